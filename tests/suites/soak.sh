# shellcheck shell=bash
# All kinds of clients at once for minutes: QUANTD_SOAK_SECONDS, 300 unless told otherwise.
source "$SUITES/e2e.sh"

run() {
  export QUANTD_SOAK_SECONDS=${QUANTD_SOAK_SECONDS:-300}
  note "$QUANTD_SOAK_SECONDS s"
  pytest_suite soak tests/e2e/test_soak.py
}
