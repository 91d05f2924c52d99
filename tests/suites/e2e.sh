# shellcheck shell=bash
source "$SUITES/venv.sh"
source "$SUITES/debs.sh"

# In one of the tests, Debian's prometheus scrapes the running server; in others, its haproxy runs in front of it.
prepare() {
  unpack_program prometheus '^(prometheus|promtool)$' &&
    unpack_program haproxy '^(haproxy|liblua5.*|libopentracing.*|libjemalloc.*)$' && prepare_venv
}

run() {
  debs_path
  pytest_suite e2e tests/e2e
}

# sanitized_e2e TREE PATHS...: a fifth of these cases, which depends on the seed, with the server of that tree.
sanitized_e2e() {
  local tree=$1 seed=${QUANTD_TEST_SEED:-$RANDOM}
  shift
  debs_path
  note "a fifth of the e2e cases: QUANTD_TEST_SEED=$seed"
  QUANTD_BUILD_DIR=build/$tree pytest_suite "$tree" "$@" --fifth="$seed"
}
