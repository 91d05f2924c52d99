# shellcheck shell=bash
# All e2e tests against a server under ThreadSanitizer.
source "$SUITES/tsan.sh"

build() { tsan_tree quantd quantctl client_example client_shared_memory_example split_against_servers; }

run() {
  build
  debs_path
  # Memory, addresses and times are not those of a real build.
  local deselected=() name
  for name in memory.py memory_limits.py faults.py::test_{the_clock_jumps,256_mib,little_room_for_addresses} \
    shared_memory_hostile.py::test_{a_cut_costs_no_memory,a_thousand_regions_leave_nothing}; do
    deselected+=(--deselect "tests/e2e/test_$name")
  done
  QUANTD_BUILD_DIR=build/tsan pytest_suite tsan_e2e tests/e2e "${deselected[@]}"
}
