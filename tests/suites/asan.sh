# shellcheck shell=bash
# All code that walks bytes which a client sent, and what holds them. The server's threads are tsan's matter.
run() {
  build_tree asan tests/core/all wire_test operations_test http_test request_fuzz_test loop_test memory_test \
    admission_test transport_test net_test services_test -- "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1"
  export UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=detect_stack_use_after_return=1
  ctest_tree asan --tests-regex '^(core|server\.(wire|operations|http|loop|memory|admission|transport|net|services)|fuzz)\.'
}
