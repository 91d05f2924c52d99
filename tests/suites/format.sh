# shellcheck shell=bash
# The languages whose tools are available; suite clients checks Go and Rust, and suite proto the contract.
RUFF=0.17.6
ruff=$QUANTD_BUILD/format/bin/ruff

prepare() {
  [[ $("$ruff" --version 2>/dev/null) == "ruff $RUFF" ]] && return
  python3 -m venv --clear "$QUANTD_BUILD/format" && "$QUANTD_BUILD/format/bin/pip" install --disable-pip-version-check --quiet "ruff==$RUFF"
}

run() {
  local language
  for language in cpp java python shell english; do check "$language" tests/format.sh --check "$language"; done
}
