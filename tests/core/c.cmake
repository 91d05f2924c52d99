# libquantd_core.so: against the core with random requests; from Python, with every argument wrong; installed, from C.
quantd_core_test(c c/c_test.cc c/c_embeddings_test.cc)
target_link_libraries(core_c_test PRIVATE quantd::core_c)

# A cross build has no interpreter for the target, and none works with ThreadSanitizer.
if(NOT CMAKE_CROSSCOMPILING AND NOT QUANTD_SANITIZE STREQUAL "thread")
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  foreach(program hostile hostile_embeddings)
    add_test(NAME core.c.${program}
      COMMAND ${Python3_EXECUTABLE} -B ${CMAKE_CURRENT_SOURCE_DIR}/c/${program}.py $<TARGET_FILE:quantd_core_c>)
  endforeach()
  set_tests_properties(core.c.hostile core.c.hostile_embeddings PROPERTIES LABELS unit TIMEOUT 300)
  if(QUANTD_SANITIZE STREQUAL "address")
    # The interpreter is not sanitized: the runtime is loaded before it, and leaks of Python are ignored.
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libasan.so
      OUTPUT_VARIABLE runtime OUTPUT_STRIP_TRAILING_WHITESPACE)
    set_tests_properties(core.c.hostile core.c.hostile_embeddings PROPERTIES
      ENVIRONMENT "LD_PRELOAD=${runtime};ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1")
  endif()
endif()
if(NOT CMAKE_CROSSCOMPILING AND QUANTD_SANITIZE STREQUAL "")
  set(c_installed ${CMAKE_CURRENT_BINARY_DIR}/c_installed)
  add_test(NAME core.c.install
    COMMAND ${CMAKE_COMMAND} --install ${PROJECT_BINARY_DIR} --component core-c --prefix ${c_installed})
  set_tests_properties(core.c.install PROPERTIES FIXTURES_SETUP core_c_installed LABELS unit)
  add_test(NAME core.c.consumer
    COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/c/consumer.sh ${c_installed} ${PROJECT_SOURCE_DIR} ${CMAKE_CURRENT_BINARY_DIR}/c_consumer)
  set_tests_properties(core.c.consumer PROPERTIES FIXTURES_REQUIRED core_c_installed LABELS unit TIMEOUT 120)
endif()
