# server/options: flags and environment.
add_executable(options_test options/options_test.cc)
target_link_libraries(options_test PRIVATE quantd::options quantd_build GTest::gmock_main)
quantd_cases(options_test server.options 60)
