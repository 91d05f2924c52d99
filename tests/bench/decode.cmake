# decode_bench: what reading a request costs.
add_executable(decode_bench decode_bench.cc)
target_link_libraries(decode_bench PRIVATE quantd::wire quantd_build)
add_test(NAME bench.decode_smoke COMMAND decode_bench)
set_tests_properties(bench.decode_smoke PROPERTIES LABELS unit TIMEOUT 120)
