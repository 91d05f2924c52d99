# A project that knows nothing of this build finds, links and runs an installed core.
if(NOT CMAKE_CROSSCOMPILING AND QUANTD_SANITIZE STREQUAL "")
  add_test(NAME core.consumer.install
    COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --component core --prefix ${CMAKE_CURRENT_BINARY_DIR}/installed)
  set_tests_properties(core.consumer.install PROPERTIES FIXTURES_SETUP core_installed LABELS unit)
  add_test(NAME core.consumer.build_and_run
    COMMAND ${CMAKE_CTEST_COMMAND} --build-and-test ${CMAKE_CURRENT_SOURCE_DIR}/consumer ${CMAKE_CURRENT_BINARY_DIR}/consumer
      --build-generator ${CMAKE_GENERATOR}
      --build-options -DCMAKE_PREFIX_PATH=${CMAKE_CURRENT_BINARY_DIR}/installed -DCMAKE_CXX_COMPILER=${CMAKE_CXX_COMPILER}
      --test-command consumer)
  set_tests_properties(core.consumer.build_and_run PROPERTIES FIXTURES_REQUIRED core_installed LABELS unit TIMEOUT 300)
endif()
