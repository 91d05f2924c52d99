# server/operations: requests from bytes to bytes. Uses the helpers of the wire's tests (wire.cmake) and of the fuzzers.
add_executable(operations_test operations/costs_test.cc operations/memory_test.cc operations/operation_test.cc)
target_link_libraries(operations_test PRIVATE quantd::operations random_parameters quantd_build GTest::gmock_main Threads::Threads)
quantd_cases(operations_test server.operations 120)
