# server/log: lines on stderr, with any kind of reader.
add_executable(log_test log/crash_test.cc log/format_test.cc log/logger_test.cc log/repeated_test.cc)
target_link_libraries(log_test PRIVATE quantd::log nlohmann_json::nlohmann_json quantd_build GTest::gmock_main Threads::Threads)
quantd_cases(log_test server.log 60)
