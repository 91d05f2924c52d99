# shellcheck shell=bash
# The languages whose tools are available; suite clients checks Go and Rust, and suite proto the contract.
source "$SUITES/venv.sh"

prepare() { prepare_venv; }

run() {
  local language
  for language in cpp java python shell; do check "$language" tests/format.sh --check "$language"; done
}
