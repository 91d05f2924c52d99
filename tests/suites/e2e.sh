# shellcheck shell=bash
source "$SUITES/venv.sh"
source "$SUITES/debs.sh"

prepare() { prepare_venv; }

run() { pytest_suite e2e tests/e2e -m "not gate"; }

# sanitized_e2e TREE PATHS...: a fifth of these cases, which depends on the seed, with the server of that tree.
sanitized_e2e() {
  local tree=$1 seed=${QUANTD_TEST_SEED:-$RANDOM}
  shift
  note "a fifth of the e2e cases: QUANTD_TEST_SEED=$seed"
  QUANTD_BUILD_DIR=build/$tree pytest_suite "$tree" "$@" --fifth="$seed"
}
