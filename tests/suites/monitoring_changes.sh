# shellcheck shell=bash
# Every threshold, comparison and `for` of the alerts is changed, and must be noticed by a case: some minutes of promtool.
source "$SUITES/monitoring.sh"

run() {
  debs_path
  pytest_suite monitoring_changes tests/monitoring/test_rules.py -k is_noticed
}
