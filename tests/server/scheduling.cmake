# server/scheduling: who gets a core, a thread or a place, and in which order.
add_executable(scheduling_test
  scheduling/compute_slots_test.cc scheduling/fair_queue_test.cc scheduling/places_test.cc scheduling/policy_test.cc scheduling/thread_pool_test.cc)
target_link_libraries(scheduling_test PRIVATE quantd::scheduling quantd_build GTest::gmock_main Threads::Threads)
quantd_cases(scheduling_test server.scheduling 60)
