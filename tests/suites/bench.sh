# shellcheck shell=bash
run() {
  build_tree release quantd_bench quantd_bench_echo decode_bench -- -DQUANTD_BUILD_TESTS=ON
  ctest_tree release --tests-regex '^bench\.'
}
