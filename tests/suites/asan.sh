# shellcheck shell=bash
# All code that walks bytes which a client sent: core, wire, operations. The server's own code is under tsan.
run() {
  build_tree asan tests/core/all tests/server/all tests/fuzz/all -- "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1"
  export UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=detect_stack_use_after_return=1
  ctest_tree asan
}
