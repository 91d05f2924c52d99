# shellcheck shell=bash
# The engine in the process, from the release tree: its own tests, the client's that also run in process, and conformance over it. Suite
# engine builds and tests it as a wheel.
source "$SUITES/conformance.sh"

module=$QUANTD_BUILD/python-module

build() {
  build_tree release _native -- -DQUANTD_BUILD_TESTS=ON -DQUANTD_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$VENV/bin/python" &&
    cmake --install "$QUANTD_BUILD/release/client/python-core" --prefix "$module" >/dev/null &&
    cp client/python-core/src/quantd_core/* "$module/quantd_core/"
}

run() {
  check "the module is built" build
  export PYTHONPATH=$module
  pytest_suite core client/python-core/tests --ignore=client/python-core/tests/test_onnxruntime.py
  pytest_suite server "${in_process[@]}"
  pytest_suite client client/python/tests/test_arguments.py
  pytest_suite conformance tests/conformance --engine=local "${others[@]/#/--ignore=}" "${in_process[@]/#/--ignore=}"
}
