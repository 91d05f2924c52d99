# server/stored_parameters: stored sets of parameters.
add_executable(stored_parameters_test
  stored_parameters/cache_test.cc stored_parameters/canonical_test.cc stored_parameters/folder_test.cc stored_parameters/library_test.cc
  stored_parameters/reference_test.cc stored_parameters/worker_test.cc)
target_link_libraries(stored_parameters_test PRIVATE quantd::stored_parameters wire_testing quantd_build GTest::gmock_main Threads::Threads)
quantd_cases(stored_parameters_test server.stored_parameters 120)
