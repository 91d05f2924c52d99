# shellcheck shell=bash
# The engine in the process: client/python-core as a wheel, as a user would build it, in an environment of its own. It is built again if its
# sources or the environment have changed.
source "$SUITES/venv.sh"

wheels=$QUANTD_BUILD/engine
layered=$QUANTD_BUILD/venv-engine # on top of build/venv-gate, whose packages it sees

prepare() {
  local tools=client/python-core/tests/requirements.txt
  prepare_gate_venv || return
  make_venv "$layered" "$(sha256sum "$tools" "$GATE_VENV/all.stamp")" "$VENV $GATE_VENV" -r "$tools"
}

# The wheel that pip makes, and then auditwheel's, which contains the libraries.
build() { with_lock "$wheels/lock" build_alone; }
build_alone() {
  local stamp pip=("$layered/bin/python" -m pip --disable-pip-version-check)
  stamp=$(find CMakeLists.txt core proto client/checkpoints client/cli client/cpp client/status_macros.h client/python-core tests/suites/engine.sh -type f -not -name '*.pyc' -print0 |
    sort -z | xargs -0 sha256sum | cat - "$layered/made.stamp" | sha256sum)
  if [[ $(cat "$wheels/stamp" 2>/dev/null) != "$stamp" ]]; then
    rm -rf "$wheels"/{built,repaired,stamp}
    # Without isolation: then the compiler finds nanobind in the same place as the last time.
    PATH=$layered/bin:$PATH "${pip[@]}" wheel --no-build-isolation --no-deps --wheel-dir "$wheels/built" \
      "--config-settings=build-dir=$wheels/tree" client/python-core || return
    PATH=$layered/bin:$PATH "$layered/bin/auditwheel" repair --wheel-dir "$wheels/repaired" "$wheels"/built/*.whl || return
    "${pip[@]}" install --quiet --no-deps --force-reinstall "$wheels"/repaired/*.whl || return
    echo "$stamp" >"$wheels/stamp"
  fi
}

run() {
  check "pip makes a wheel, auditwheel a manylinux one" build
  check "the wheel is named for manylinux" compgen -G "$wheels/repaired/quantd_core-*-manylinux_*.whl"
  check "it has its libraries and their licences" "$layered/bin/python" client/python-core/tests/wheel.py
  VENV=$layered
  pytest_suite core client/python-core/tests
  pytest_suite parquet client/python/tests/test_parquet.py
  pytest_suite server tests/conformance/test_local.py tests/conformance/test_local_shared.py
  # The client's tests that run against a server and in process.
  pytest_suite client client/python/tests/test_arguments.py
  pytest_suite conformance tests/conformance --engine=local --ignore=tests/conformance/test_local.py \
    --ignore=tests/conformance/test_local_shared.py
}
