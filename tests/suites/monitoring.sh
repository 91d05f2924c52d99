# shellcheck shell=bash
source "$SUITES/venv.sh"
source "$SUITES/debs.sh"

prepare() {
  unpack_program prometheus '^(prometheus|promtool)$' &&
    unpack_program prometheus-alertmanager '^prometheus-alertmanager$' && prepare_venv
}

run() {
  debs_path
  pytest_suite monitoring tests/monitoring
}
