# server/loop: events that calls wait for, and the threads that they run on.
add_executable(loop_test loop/busy_poll_test.cc loop/event_test.cc loop/inbox_test.cc loop/lead_test.cc loop/loop_test.cc loop/timers_test.cc)
target_link_libraries(loop_test PRIVATE quantd::loop quantd::scheduling quantd_build GTest::gmock_main Threads::Threads)
quantd_cases(loop_test server.loop 60)
