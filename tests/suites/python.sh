# shellcheck shell=bash
source "$SUITES/venv.sh"

prepare() { prepare_venv; }

run() { pytest_suite python client/python/tests; }
