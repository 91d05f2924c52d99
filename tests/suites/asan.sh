# shellcheck shell=bash
# Everything in C++ but the clients, and a server under load and under attack, under AddressSanitizer and UBSan.
source "$SUITES/e2e.sh"

run() {
  build_tree asan tests/core/all tests/server/all fuzzers quantd -- "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1"
  export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 ASAN_OPTIONS=detect_stack_use_after_return=1
  # These count every operator new, and the sanitizer has its own.
  ctest_tree asan --tests-regex '^(core|server|fuzz)\.' --exclude-regex '^server\.(wire\.WireMemory|operations\.Allocations)'
  debs_path
  QUANTD_BUILD_DIR=build/asan pytest_suite asan tests/e2e/test_{hostile,overload,limits,restart,stream}.py
}
