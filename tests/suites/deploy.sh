# shellcheck shell=bash
source "$SUITES/venv.sh"
source "$SUITES/debs.sh"

prepare() {
  unpack_program kubernetes-client kubectl && unpack_program prometheus promtool && prepare_venv
}

run() {
  debs_path
  pytest_suite deploy tests/deploy
}
