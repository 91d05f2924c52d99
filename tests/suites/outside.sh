# shellcheck shell=bash
source "$SUITES/conformance.sh"

prepare() { prepare_gate_venv; }

run() {
  VENV=$GATE_VENV
  pytest_suite outside "${others[@]}"
}
