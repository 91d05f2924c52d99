# decode_bench: what reading a request costs.
add_executable(decode_bench decode_bench.cc)
target_link_libraries(decode_bench PRIVATE quantd::wire quantd_build)
