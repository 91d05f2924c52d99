# server/loop: events.
add_executable(loop_test loop/event_test.cc)
target_link_libraries(loop_test PRIVATE quantd::loop quantd_build GTest::gmock_main Threads::Threads)
gtest_discover_tests(loop_test TEST_PREFIX server.loop. DISCOVERY_MODE PRE_TEST PROPERTIES LABELS unit TIMEOUT 60)
