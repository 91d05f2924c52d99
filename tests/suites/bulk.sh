# shellcheck shell=bash
# The examples for Ray Data and Dask, with the client and the engine in an environment of their own: Ray's packages must fit
# one another, and take 700 MB.
source "$SUITES/venv.sh"

BULK=$QUANTD_BUILD/venv-bulk

prepare() {
  local requirements=client/python/examples/requirements.txt stamp
  stamp=$(cat "$requirements" | sha256sum)
  [[ $(cat "$BULK/made.stamp" 2>/dev/null) == "$stamp" ]] && return
  rm -rf "$BULK"
  python3 -m venv "$BULK" && "$BULK/bin/python" -m pip install --disable-pip-version-check --quiet -r "$requirements" &&
    echo "$stamp" >"$BULK/made.stamp"
}

# If both suites run, the engine's has prepared this already.
build() {
  suite_call engine prepare && suite_call engine build &&
    "$BULK/bin/python" -m pip install --disable-pip-version-check --quiet --no-deps --force-reinstall \
      "$QUANTD_BUILD"/engine/repaired/*.whl "$QUANTD_BUILD/python-client"
}

run() {
  check "the client and the engine are installed" build
  VENV=$BULK
  pytest_suite bulk client/python/tests/test_bulk.py
}
