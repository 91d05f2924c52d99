# shellcheck shell=bash
source "$SUITES/venv.sh"

# Files that need large packages or those of npm: suite types.
typed=(docs parquet typing)
typed=("${typed[@]/#/client/python/tests/test_}")
typed=("${typed[@]/%/.py}")

prepare() { prepare_venv; }

run() { pytest_suite python client/python/tests "${typed[@]/#/--ignore=}"; }
