# operations_bench: GB/s of the three operations, planned and executed as the server does: every pair of types, every
# granularity, tensors larger than the caches beside what bounds them.
find_package(hwy REQUIRED)
find_package(nlohmann_json REQUIRED)
add_executable(operations_bench operations_bench.cc operations_cases.cc operations_large.cc operations_tensors.cc
  kernels_limits.cc)
target_include_directories(operations_bench PRIVATE ${PROJECT_SOURCE_DIR}/core/src ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(operations_bench PRIVATE quantd::core quantd_build hwy::hwy absl::flags absl::flags_parse
  absl::strings nlohmann_json::nlohmann_json)
# A run of a second, so that it keeps working.
add_test(NAME bench.operations_smoke COMMAND operations_bench --quick --rounds=1 --milliseconds=0.05 --sizes=1 --threads=2)
set_tests_properties(bench.operations_smoke PROPERTIES LABELS unit TIMEOUT 240)
