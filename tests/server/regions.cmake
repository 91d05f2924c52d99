# server/regions: shared memory, with anything in its directory.
add_executable(regions_test
  regions/sigbus_guard_test.cc regions/leftovers_test.cc regions/name_test.cc regions/regions_test.cc regions/stress_test.cc)
target_link_libraries(regions_test PRIVATE quantd::regions quantd_build GTest::gmock_main Threads::Threads)
quantd_cases(regions_test server.regions 120)
