# server/process: signals and the service manager.
add_executable(process_test process/every_second_test.cc process/limits_test.cc process/notify_test.cc
  process/ready_file_test.cc process/signals_test.cc)
target_link_libraries(process_test PRIVATE quantd::process quantd_build absl::strings nlohmann_json::nlohmann_json GTest::gmock_main Threads::Threads)
quantd_cases(process_test server.process 60)
