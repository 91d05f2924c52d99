# kernels_bench: GB/s of every kernel of the list beside the copy or the read that bounds it.
find_package(hwy REQUIRED)
add_executable(kernels_bench kernels_bench.cc kernels_cases.cc kernels_limits.cc kernels_report.cc)
target_include_directories(kernels_bench PRIVATE ${PROJECT_SOURCE_DIR}/core/src ${CMAKE_CURRENT_SOURCE_DIR})
target_link_libraries(kernels_bench PRIVATE quantd::core quantd_build hwy::hwy absl::flags absl::flags_parse
  absl::strings Threads::Threads)
set_source_files_properties(kernels_limits.cc PROPERTIES COMPILE_OPTIONS -O2)
# A run of a second, so that it keeps working.
add_test(NAME bench.kernels_smoke COMMAND kernels_bench --quick --sizes=64KiB --filter=u8 --milliseconds=1)
set_tests_properties(bench.kernels_smoke PROPERTIES LABELS unit TIMEOUT 60)
