# The client as other projects use it. Installed: found, linked and run by a C++17 project.
if(CMAKE_CROSSCOMPILING OR NOT QUANTD_SANITIZE STREQUAL "")
  return()
endif()
set(installed ${CMAKE_CURRENT_BINARY_DIR}/installed)
set(compiler -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER} -DCMAKE_CXX_COMPILER_LAUNCHER=${CMAKE_CXX_COMPILER_LAUNCHER})
add_test(NAME client.consumer.install
  COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --component client-cpp --prefix ${installed})
set_tests_properties(client.consumer.install PROPERTIES FIXTURES_SETUP client_installed LABELS unit)
add_test(NAME client.consumer.installed
  COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${CMAKE_CURRENT_SOURCE_DIR}/consumer ${CMAKE_CURRENT_BINARY_DIR}/consumer
    --build-generator ${CMAKE_GENERATOR} --build-options -DCMAKE_PREFIX_PATH=${installed} ${compiler}
    --test-command consumer)
set_tests_properties(client.consumer.installed PROPERTIES FIXTURES_REQUIRED client_installed LABELS unit TIMEOUT 300)

# With add_subdirectory: configured, and the consumer compiled. It is not linked, because that would compile all libraries
# again.
add_test(NAME client.consumer.subdirectory.configure
  COMMAND ${CMAKE_COMMAND} -S ${CMAKE_CURRENT_SOURCE_DIR}/consumer -B ${CMAKE_CURRENT_BINARY_DIR}/consumer_subdirectory
    -G ${CMAKE_GENERATOR} -DQUANTD_SOURCE=${PROJECT_SOURCE_DIR} ${compiler})
add_test(NAME client.consumer.subdirectory.compile
  COMMAND ${CMAKE_COMMAND} --build ${CMAKE_CURRENT_BINARY_DIR}/consumer_subdirectory --target CMakeFiles/consumer.dir/main.cc.o)
set_tests_properties(client.consumer.subdirectory.configure PROPERTIES FIXTURES_SETUP client_taken_in LABELS unit TIMEOUT 120)
set_tests_properties(client.consumer.subdirectory.compile PROPERTIES FIXTURES_REQUIRED client_taken_in LABELS unit TIMEOUT 300)
