# shellcheck shell=bash
# The server's threads meet in calls from outside, so it is the e2e tests that run: against a server under ThreadSanitizer,
# which ends with exit code 66 when it saw a race, and so fails the test that started it.
source "$SUITES/e2e.sh"

run() {
  # -Wno-tsan: Abseil's flags use a fence, which ThreadSanitizer does not follow.
  build_tree tsan quantd quantctl client_example client_shared_memory_example -- "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1 -Wno-tsan"
  debs_path
  # Debian's libraries (nghttp2, oneTBB, protobuf) are not instrumented: what happens inside them can't be seen, only what we
  # do with what they hand over.
  export TSAN_OPTIONS="ignore_noninstrumented_modules=1 suppressions=$SUITES/tsan.supp"
  # Memory and times are not those of a real build.
  QUANTD_BUILD_DIR=build/tsan pytest_suite tsan tests/e2e --deselect tests/e2e/test_memory.py \
    --deselect tests/e2e/test_shared_memory_hostile.py::test_a_cut_costs_no_memory \
    --deselect tests/e2e/test_shared_memory_hostile.py::test_a_thousand_regions_leave_nothing
}
