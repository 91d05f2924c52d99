# shellcheck shell=bash
source "$SUITES/venv.sh"
source "$SUITES/debs.sh"

prepare() {
  unpack_program prometheus '^(prometheus|promtool)$' &&
    unpack_program prometheus-alertmanager '^prometheus-alertmanager$' && prepare_gate_venv
}

run() {
  debs_path
  VENV=$GATE_VENV
  pytest_suite monitoring tests/monitoring
}
