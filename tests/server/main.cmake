# server/ itself: options.
add_executable(options_test main/options_test.cc)
target_link_libraries(options_test PRIVATE quantd::server quantd_build GTest::gmock_main)
gtest_discover_tests(options_test TEST_PREFIX server.main. DISCOVERY_MODE PRE_TEST PROPERTIES LABELS unit TIMEOUT 60)
