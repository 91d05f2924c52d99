# shellcheck shell=bash
source "$SUITES/venv.sh"
source "$SUITES/debs.sh"

# Debian's prometheus scrapes the running server in one of the tests, and its haproxy stands before it in others.
prepare() {
  unpack_program prometheus prometheus '^(prometheus|promtool)$' &&
    unpack_program haproxy haproxy '^(haproxy|liblua5.*|libopentracing.*)$' && prepare_venv
}

run() {
  debs_path
  pytest_suite e2e tests/e2e
}
