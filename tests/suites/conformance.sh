# shellcheck shell=bash
source "$SUITES/venv.sh"

# Files about other engines and databases, and the tests of the kit itself: suite outside.
others=(kit)
others=("${others[@]/#/tests/conformance/test_}")
others=("${others[@]/%/.py}")
# Files that compare the engine in the process with a server: suite local.
in_process=(tests/conformance/test_local.py tests/conformance/test_local_shared.py)

prepare() { prepare_venv; }

run() { pytest_suite conformance tests/conformance "${others[@]/#/--ignore=}" "${in_process[@]/#/--ignore=}"; }
