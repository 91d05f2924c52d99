# shellcheck shell=bash
# The virtual environment of the Python suites, in build/venv: prepare_venv. It has the requirements of all suites, and the client,
# installed as a user would. Each part is made again if its files have changed.

# Several suites prepare at the same time: one makes it, the others wait for the lock and then find it.
prepare_venv() { with_lock "$QUANTD_BUILD/venv.lock" prepare_venv_alone; }
prepare_venv_alone() {
  local stamp pip=("$VENV/bin/python" -m pip install --disable-pip-version-check --quiet --no-compile)
  local lists=("$QUANTD_ROOT"/tests/*/requirements.txt "$QUANTD_ROOT/client/python/tests/requirements.txt")
  stamp=$(cat "${lists[@]}" "${BASH_SOURCE[0]}" | sha256sum)
  if [[ $(cat "$VENV/requirements.stamp" 2>/dev/null) != "$stamp" ]]; then
    rm -rf "$VENV"
    python3 -m venv "$VENV" || return
    "${pip[@]}" pytest pytest-xdist "${lists[@]/#/--requirement=}" || return
    # Of numpydoc only the validator is used, which does not need the package's dependencies for Sphinx; of
    # sentence-transformers one module, which does not need torch.
    "${pip[@]}" --no-deps numpydoc==1.11.0 sentence-transformers==6.2.0 || return
    echo "$stamp" >"$VENV/requirements.stamp"
  fi
  stamp=$(cd "$QUANTD_ROOT" && find client/python/src client/python/*.* client/cli/kit/proto proto -type f -not -name '*.pyc' -not -name '*.binpb' \
    -not -path '*.egg-info/*' -print0 | sort -z | xargs -0 sha256sum | sha256sum)
  if [[ $(cat "$VENV/client.stamp" 2>/dev/null) != "$stamp" ]]; then
    # From a copy, because setuptools writes beside the sources.
    rm -rf "$QUANTD_BUILD/python-client" && mkdir -p "$QUANTD_BUILD/python-client"
    cp -r "$QUANTD_ROOT"/client/python/. "$QUANTD_BUILD/python-client" || return
    rm -rf "$QUANTD_BUILD"/python-client/{build,src/*.egg-info}
    QUANTD_PROTO_DIR=$QUANTD_ROOT/proto "${pip[@]}" --force-reinstall --no-deps "$QUANTD_BUILD/python-client" || return
    "${pip[@]}" "$QUANTD_BUILD/python-client" || return
    echo "$stamp" >"$VENV/client.stamp"
  fi
}
