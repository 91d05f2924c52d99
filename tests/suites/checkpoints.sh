# shellcheck shell=bash
# quantctl convert against the packages whose layouts it writes, in an environment of their own: with torch they take gigabytes.
source "$SUITES/venv.sh"

PACKAGES=$QUANTD_BUILD/venv-checkpoints

prepare() {
  prepare_venv && with_lock "$PACKAGES.lock" prepare_packages || return
  # On top of build/venv, which has the client with its conformance kit.
  "$VENV/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))' \
    >"$("$PACKAGES/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/layer.pth"
}
prepare_packages() {
  local requirements=tests/checkpoints/requirements-packages.txt stamp pip=("$PACKAGES/bin/python" -m pip install --disable-pip-version-check --quiet)
  stamp=$(cat "$requirements" "${BASH_SOURCE[0]}" | sha256sum)
  [[ $(cat "$PACKAGES/made.stamp" 2>/dev/null) == "$stamp" ]] && return
  rm -rf "$PACKAGES"
  python3 -m venv "$PACKAGES" && "${pip[@]}" -r "$requirements" && "${pip[@]}" --no-deps llmcompressor==0.14.0.1 &&
    echo "$stamp" >"$PACKAGES/made.stamp"
}

run() {
  VENV=$PACKAGES
  pytest_suite checkpoints tests/checkpoints
  # The table of test_packages.py: layout, type, weights compared, differences.
  tr '>' '\n' <"$RESULTS/$RESULT_SUITE-checkpoints.xml" | sed -n 's/.*name="row" value="\([^"]*\)".*/    \1/p'
}
