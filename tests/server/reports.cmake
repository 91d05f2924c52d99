# server/reports.
add_executable(overload_test reports/overload_test.cc)
target_link_libraries(overload_test PRIVATE quantd::reports quantd_build GTest::gmock_main Threads::Threads)
gtest_discover_tests(overload_test TEST_PREFIX server.overload. DISCOVERY_MODE PRE_TEST PROPERTIES LABELS unit TIMEOUT 60)
