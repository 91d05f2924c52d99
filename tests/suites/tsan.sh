# shellcheck shell=bash
# Code with several threads: the rooms that use them, a whole server in the test's process, and a server under load and under attack. A
# server in which ThreadSanitizer finds a race ends with exit code 66, which fails the test that started it.
source "$SUITES/e2e.sh"

rooms=(access loop log memory regions admission trace transport http metrics rpc)

tsan_tree() {
  # -Wno-tsan: Abseil's flags use a fence, which ThreadSanitizer does not understand.
  build_tree tsan "$@" -- "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1 -Wno-tsan"
  # Debian's libraries (nghttp2, oneTBB, protobuf) are not instrumented: only what we do with their results is visible, not what
  # happens inside them. At its end a process waits a tenth of a second, not a whole one, for late uses of freed memory.
  export TSAN_OPTIONS="atexit_sleep_ms=100 ignore_noninstrumented_modules=1 suppressions=$SUITES/tsan.supp"
}

build() { tsan_tree quantd rpc_stress_test "${rooms[@]/%/_test}"; }

run() {
  build
  ctest_tree tsan --tests-regex "^server\.($(IFS='|' && echo "${rooms[*]}"))\."
  sanitized_e2e tsan tests/e2e/test_{hostile,overload,restart,stream}.py
}
