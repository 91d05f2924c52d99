# shellcheck shell=bash
# quantctl convert against the packages whose layouts it writes, in an environment of their own: with torch they take gigabytes.
source "$SUITES/venv.sh"

PACKAGES=$QUANTD_BUILD/venv-checkpoints

prepare() { prepare_venv && with_lock "$PACKAGES.lock" prepare_packages; }
prepare_packages() {
  local requirements=tests/checkpoints/requirements-packages.txt stamp
  stamp=$(cat "$requirements" "${BASH_SOURCE[0]}" "$VENV/made.stamp" | sha256sum)
  [[ $(cat "$PACKAGES/all.stamp" 2>/dev/null) == "$stamp" ]] && return
  # On top of build/venv, which has the client.
  make_venv "$PACKAGES" "$stamp" "$VENV" -r "$requirements" &&
    "$PACKAGES/bin/python" -m pip install --disable-pip-version-check --quiet --no-deps llmcompressor==0.14.0.1 && echo "$stamp" >"$PACKAGES/all.stamp"
}

run() {
  VENV=$PACKAGES
  export PYTHONPATH=$QUANTD_ROOT/tests/conformance # the conformance kit
  pytest_suite checkpoints tests/checkpoints
  # The table of test_families.py: model type, class, tensors that are converted.
  tr '>' '\n' <"$RESULTS/$RESULT_SUITE-checkpoints.xml" | sed -n 's/.*name="row" value="\([^"]*\)".*/    \1/p'
}
