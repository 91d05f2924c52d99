# shellcheck shell=bash
# All code that walks bytes which a client sent: core, wire, operations, http. The server's threads are tsan's matter.
run() {
  build_tree asan tests/core/all regions_test wire_test operations_test http_test request_fuzz_test -- "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1"
  export UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=detect_stack_use_after_return=1
  ctest_tree asan --tests-regex '^(core|server\.regions|server\.wire|server\.operations|server\.http|fuzz)\.'
}
