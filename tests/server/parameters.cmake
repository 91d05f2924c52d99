# server/parameters: stored sets of parameters.
add_executable(parameters_test
  parameters/cache_test.cc parameters/canonical_test.cc parameters/folder_test.cc parameters/library_test.cc parameters/reference_test.cc
  parameters/worker_test.cc)
target_link_libraries(parameters_test PRIVATE quantd::parameters wire_testing quantd_build GTest::gmock_main Threads::Threads)
gtest_discover_tests(parameters_test TEST_PREFIX server.parameters. DISCOVERY_MODE PRE_TEST PROPERTIES LABELS unit TIMEOUT 120)
