# shellcheck shell=bash
source "$SUITES/python.sh"

# test_typing.py uses it to see the package's types; once it is installed, nothing more is downloaded.
pyright=$QUANTD_BUILD/pyright/node_modules/.bin/pyright

prepare() {
  prepare_gate_venv || return
  [[ $("$pyright" --version 2>/dev/null) == "pyright 1.1.414" ]] ||
    npm install --prefix "$QUANTD_BUILD/pyright" --no-audit --no-fund --no-update-notifier pyright@1.1.414
}

run() {
  check "pyright is there" "$pyright" --version
  VENV=$GATE_VENV
  pytest_suite types "${typed[@]}"
}
