# server/operations: requests from bytes to bytes. Uses the wire's test helpers (wire.cmake).
add_executable(operations_test operations/costs_test.cc operations/memory_test.cc operations/operation_test.cc operations/random_parameters.cc)
target_link_libraries(operations_test PRIVATE quantd::operations wire_testing quantd_build GTest::gmock_main Threads::Threads)
quantd_cases(operations_test server.operations 120)

add_executable(operations_memory_test operations/allocations_test.cc operations/random_parameters.cc)
target_link_libraries(operations_memory_test PRIVATE counted_memory quantd::operations wire_testing quantd_build GTest::gmock_main)
quantd_cases(operations_memory_test server.operations 120)
