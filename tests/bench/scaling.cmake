# scaling_bench: the core's operations by 1 to all threads.
find_package(nlohmann_json REQUIRED)
add_executable(scaling_bench scaling_bench.cc)
target_link_libraries(scaling_bench PRIVATE quantd::core quantd_build absl::flags absl::flags_parse absl::strings
  nlohmann_json::nlohmann_json)
add_test(NAME bench.scaling_smoke COMMAND scaling_bench --quick)
set_tests_properties(bench.scaling_smoke PROPERTIES LABELS unit TIMEOUT 240)
