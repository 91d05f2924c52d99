# shellcheck shell=bash
# The virtual environments of the Python suites. Each is made again if its requirements have changed.
#   prepare_venv        build/venv: tests/requirements.txt, and the client, installed as a user would
#   prepare_gate_venv   build/venv-gate: on top of it, what single suites of the gate need; some of these packages are large

GATE_VENV=$QUANTD_BUILD/venv-gate

# make_venv FOLDER STAMP BELOW REQUIREMENTS...: makes it unless it has that stamp. It sees the packages of the environments in BELOW.
make_venv() {
  local folder=$1 stamp=$2 below=$3 one
  shift 3
  [[ $(cat "$folder/made.stamp" 2>/dev/null) == "$stamp" ]] && return
  rm -rf "$folder"
  # shellcheck disable=SC2086  # pip is in the environment below
  python3 -m venv ${below:+--without-pip} "$folder" || return
  for one in $below; do packages_of "$one" >>"$(packages_of "$folder")/layer.pth" || return; done
  "$folder/bin/python" -m pip install --disable-pip-version-check --quiet --no-compile "$@" || return
  echo "$stamp" >"$folder/made.stamp"
}
packages_of() { "$1/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'; }

# Several suites prepare at the same time: one makes it, the others wait for the lock and then find it.
prepare_venv() { with_lock "$QUANTD_BUILD/venv.lock" prepare_venv_alone; }
prepare_venv_alone() {
  local stamp pip=("$VENV/bin/python" -m pip --disable-pip-version-check --quiet) sources=$QUANTD_BUILD/python-client
  make_venv "$VENV" "$(sha256sum <"$QUANTD_ROOT/tests/requirements.txt")" "" -r "$QUANTD_ROOT/tests/requirements.txt" || return
  stamp=$(cd "$QUANTD_ROOT" && find client/python/src client/python/*.* proto -type f -not -name '*.pyc' -not -name '*.binpb' \
    -not -path '*.egg-info/*' -print0 | sort -z | xargs -0 sha256sum | sha256sum)
  [[ $(cat "$VENV/client.stamp" 2>/dev/null) == "$stamp" ]] && return
  # From a copy, because setuptools writes beside the sources. Without isolation: what builds it is here already.
  rm -rf "$sources" && mkdir -p "$sources" && cp -r "$QUANTD_ROOT"/client/python/. "$sources" || return
  rm -rf "$sources"/{build,src/*.egg-info}
  "${pip[@]}" uninstall --yes quantd 2>/dev/null
  QUANTD_PROTO_DIR=$QUANTD_ROOT/proto "${pip[@]}" install --no-build-isolation --no-compile "$sources" || return
  echo "$stamp" >"$VENV/client.stamp"
}

prepare_gate_venv() { prepare_venv && with_lock "$GATE_VENV.lock" prepare_gate_venv_alone; }
prepare_gate_venv_alone() {
  local lists=("$QUANTD_ROOT"/tests/*/requirements.txt "$QUANTD_ROOT/client/python/tests/requirements.txt") stamp
  stamp=$(cat "${lists[@]}" "$VENV/made.stamp" "${BASH_SOURCE[0]}" | sha256sum)
  [[ $(cat "$GATE_VENV/all.stamp" 2>/dev/null) == "$stamp" ]] && return
  make_venv "$GATE_VENV" "$stamp" "$VENV" "${lists[@]/#/--requirement=}" || return
  # Of numpydoc only the validator is used, which does not need the package's dependencies for Sphinx; of sentence-transformers
  # one module, which does not need torch.
  "$GATE_VENV/bin/python" -m pip install --disable-pip-version-check --quiet --no-compile --no-deps numpydoc==1.11.0 sentence-transformers==6.2.0 || return
  echo "$stamp" >"$GATE_VENV/all.stamp"
}
