# shellcheck shell=bash
# The clients of client/LANG that are not C++ or Python: tests/languages/LANG.sh has prepare_LANG and run_LANG for each.
source "$SUITES/debs.sh"

CLIENTS_BUILD=$QUANTD_BUILD/clients
export TEST_QUANTD=$QUANTD_BUILD/release/server/quantd
export TEST_VECTORS=$CLIENTS_BUILD/vectors

shopt -s nullglob
for language in "$QUANTD_ROOT"/tests/languages/*.sh; do
  # shellcheck source=/dev/null
  source "$language"
done

# The selected languages: all, or those of QUANTD_CLIENTS.
languages() {
  local file chosen=${QUANTD_CLIENTS:-}
  for file in "$QUANTD_ROOT"/tests/languages/*.sh; do
    file=$(basename "$file" .sh)
    if [[ -z $chosen || " $chosen " == *" $file "* ]]; then echo "$file"; fi
  done
}

# cases LANG: reports lines "pass|fail|skip NAME WHY", separated by tabs, from stdin. None at all is a failure.
cases() {
  local language=$1 kind name why seen=0
  while IFS=$'\t' read -r kind name why; do
    seen=$((seen + 1))
    case $kind in
      pass) pass "$language: $name" ;;
      skip) skip "$language: $name" "$why" ;;
      *) fail "$language: $name" "$why" ;;
    esac
  done
  [[ $seen -gt 0 ]] || fail "$language: tests" "no case ran"
}

# readme LANG: runs the commands of client/LANG/README.md, every block of sh, in one shell in a copy of the tree without ignored
# files, next to the shared server. Every block must print what the comment in the first one says: codes of a sine. Variables
# that the caller sets decide where tools keep their downloads, not a home folder.
readme() {
  local fresh=$CLIENTS_BUILD/$1/fresh readme=$QUANTD_ROOT/client/$1/README.md blocks printed expected
  rm -rf "$fresh" && mkdir -p "$fresh/clone" "$fresh/tmp" || return
  (cd "$QUANTD_ROOT" && git -c 'safe.directory=*' ls-files -z --cached --others --exclude-standard | tar -c --ignore-failed-read --null -T -) |
    tar -x -C "$fresh/clone" || return
  awk '/^```sh$/ { on = 1; next } /^```$/ { on = 0 } on' "$readme" >"$fresh/commands.sh"
  (cd "$fresh/clone" && TMPDIR=$fresh/tmp bash -euxo pipefail "$fresh/commands.sh") | tee "$fresh/output" || return
  # Maven ends with an escape sequence that resets colours, without a newline.
  sed -i 's/\x1b\[[0-9;]*m//g' "$fresh/output"
  blocks=$(grep -c '^```sh$' "$readme")
  expected=$(sed -n 's/.* # \(\[4.* dB\)$/\1/p' "$readme")
  printed=$(grep -cFx "$expected" "$fresh/output")
  echo "$printed of $blocks blocks printed $expected"
  # sin(1), sin(2) and sin(3), in steps of about 2 / 254.
  [[ $expected == *0*107*115*18*dB && $blocks -gt 0 && $printed -eq $blocks ]]
}

# start_quantd NAME FLAGS...: starts a server, and sets QUANTD_ADDRESS to its first address and QUANTD_PID to its pid.
start_quantd() {
  local folder=$CLIENTS_BUILD/$1 deadline=$((SECONDS + 30))
  shift
  rm -rf "$folder" && mkdir -p "$folder"
  env -i PATH="$PATH" "$TEST_QUANTD" --listen=127.0.0.1:0 --http_listen=127.0.0.1:0 --ready_file="$folder/ready.json" "$@" \
    >"$folder/log" 2>&1 &
  QUANTD_PID=$!
  until [[ -s $folder/ready.json ]]; do
    if ! kill -0 "$QUANTD_PID" 2>/dev/null || [[ $SECONDS -ge $deadline ]]; then
      tail -n 5 "$folder/log"
      return 1
    fi
    sleep 0.05
  done
  QUANTD_ADDRESS=$(python3 -c 'import json, sys; print(json.load(open(sys.argv[1]))["grpc"][0])' "$folder/ready.json")
}

# If one language cannot be prepared, the others still run.
prepare() {
  local language
  mkdir -p "$CLIENTS_BUILD"
  for language in $(languages); do
    mkdir -p "$CLIENTS_BUILD/$language"
    echo "== $language"
    rm -f "$CLIENTS_BUILD/$language/prepared"
    ("prepare_$language") && touch "$CLIENTS_BUILD/$language/prepared"
  done
  return 0
}

run() {
  local language status=0
  check "vectors" python3 "$QUANTD_ROOT/tests/languages/vectors.py" "$QUANTD_BUILD/release/client/quantctl" "$TEST_VECTORS"
  if ! start_quantd server; then
    fail "start of the server" "build/clients/server/log"
    return
  fi
  export QUANTD_ADDRESS
  # Not local: the trap outlives this function.
  shared=$QUANTD_PID
  trap 'kill "$shared" 2>/dev/null' EXIT
  for language in $(languages); do
    if [[ -f $CLIENTS_BUILD/$language/prepared ]]; then
      ("run_$language") || fail "$language" "ended with $?"
    else
      fail "$language: preparation" "see build/logs/prepare-clients.log"
    fi
  done
  # Whatever the clients did, the server is alive and ends properly.
  kill -TERM "$shared"
  wait "$shared" || status=$?
  trap - EXIT
  if [[ $status -eq 0 ]]; then pass "the server's end"; else fail "the server's end" "exit $status; build/clients/server/log"; fi
}
