# shellcheck shell=bash
# The languages whose tools are at hand; those of Go and Rust are in suite clients, and the contract's in proto.
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
