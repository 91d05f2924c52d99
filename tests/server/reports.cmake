# server/reports.
add_executable(overload_test reports/overload_test.cc)
target_link_libraries(overload_test PRIVATE quantd::reports quantd_build GTest::gmock_main Threads::Threads)
quantd_cases(overload_test server.reports 60)
