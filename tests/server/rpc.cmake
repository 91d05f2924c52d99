# server/rpc: a whole server in this process, under random cancellation, and with kernels that sleep.
foreach(name stress cores)
  add_executable(rpc_${name}_test rpc/${name}_test.cc)
  target_link_libraries(rpc_${name}_test PRIVATE quantd::server quantd::proto_grpc quantd_build GTest::gmock_main absl::strings)
  gtest_discover_tests(rpc_${name}_test TEST_PREFIX server.rpc. DISCOVERY_MODE PRE_TEST PROPERTIES LABELS unit TIMEOUT 120)
endforeach()
