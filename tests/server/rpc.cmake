# server/rpc: a whole server in this process, with kernels that wait at a gate or sleep, and under random cancellation.
add_executable(rpc_test
  rpc/as_sent_test.cc rpc/counts_test.cc rpc/memory_test.cc rpc/parts_test.cc rpc/router_test.cc
  rpc/services_test.cc rpc/testing.cc rpc/where_test.cc http/peer.cc)
target_link_libraries(rpc_test PRIVATE quantd::server transport_testing quantd_build GTest::gmock_main)
quantd_cases(rpc_test server.rpc 120)
add_executable(rpc_stress_test rpc/stress_test.cc)
target_link_libraries(rpc_stress_test PRIVATE quantd::server quantd::proto_grpc quantd_build GTest::gmock_main absl::strings)
quantd_cases(rpc_stress_test server.rpc 120)
