# server/rpc: a whole server in this process under random cancellation.
add_executable(rpc_stress_test rpc/stress_test.cc)
target_link_libraries(rpc_stress_test PRIVATE quantd::server quantd::proto_grpc quantd_build GTest::gmock_main absl::strings)
gtest_discover_tests(rpc_stress_test TEST_PREFIX server.rpc. DISCOVERY_MODE PRE_TEST PROPERTIES LABELS unit TIMEOUT 120)
