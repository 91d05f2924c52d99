# server/options: flags and environment.
add_executable(options_test options/options_test.cc)
target_link_libraries(options_test PRIVATE quantd::options quantd_build GTest::gmock_main)
gtest_discover_tests(options_test TEST_PREFIX server.options. DISCOVERY_MODE PRE_TEST PROPERTIES LABELS unit TIMEOUT 60)
