# shellcheck shell=bash
# The e2e cases that are marked gate: adversaries, faults, large files, small machines, other programs around the server.
source "$SUITES/e2e.sh"

# Debian's prometheus scrapes the running server; its haproxy runs in front of it.
prepare() {
  unpack_program prometheus '^(prometheus|promtool)$' &&
    unpack_program haproxy '^(haproxy|liblua5.*|libopentracing.*|libjemalloc.*)$' && prepare_venv
}

run() {
  debs_path
  pytest_suite attacks tests/e2e -m gate
}
