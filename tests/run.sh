#!/usr/bin/env bash
# Installs what is missing, builds, runs the test suites and ends with one line: N passed, N failed.
#
#   ./tests/run.sh                    the default tier of the table below: every promise to a user, once
#   ./tests/run.sh gate               the gate tier: what a change must pass besides
#   ./tests/run.sh --all              all three tiers; the long one has what takes hours, gigabytes or root
#   ./tests/run.sh unit e2e           these suites
#   ./tests/run.sh room server/wire   builds and runs the unit tests of one room; without a name, lists the rooms
#   ./tests/run.sh [TIER] --changed[=REV]   those suites of the tier that a change since REV (HEAD) can break, by tests/suites/changed.py
#   ./tests/run.sh --list             lists the suites
#
# Results are in build/results, logs in build/logs. tests/suites/README.md says how to add a suite, and which suite guards what.

set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../deploy/packages.sh"
source "$here/suites/lib.sh"
cd "$QUANTD_ROOT" || exit 1

# In the order in which they run: quick checks of the text first. A suite is tests/suites/NAME.sh.
#   tier: default, gate or long    tree: release, or - if the suite builds what it needs
#   groups: of deploy/packages.sh    cpu: minutes of one CPU from scratch, including its own tree, but not release
suites_table() {
  cat <<'TABLE'
arrows       default  -        test                 1    include arrows, coroutine dialect, lines a room
format       default  -        test                 1    tests/format.sh --check of C++, Java, Python, shell
unit         default  release  build,test           2    C++ unit tests, every case of gtest a case here
e2e          default  release  build,test           2    the real binaries: flags, ports, metrics, drain, TLS, bad input, quantctl
python       default  release  build,test           1    the Python client against a running server
conformance  default  release  build,test           1    the oracle, ONNX node tests and ml_dtypes over the wire
local        default  release  build,test           1    the engine in a Python process: its tests, and the same bits as the server
asan_wire    default  -        build,test           4    the rooms that read a client's bytes, under ASan and UBSan, with short fuzz runs
proto        gate     -        build,test,proto     1    buf format and lint, buf breaking against the released contract
types        gate     release  build,test,proto     1    the Python client's types under pyright, its documentation, pyarrow, ONNX Runtime
outside      gate     release  build,test           1    conformance beside other engines, kits and databases
deploy       gate     release  build,test,package   4    manifests, compose file, unit, bill of materials, release script
monitoring   gate     release  build,test           3    alerts, recording rules and dashboard under promtool
attacks      gate     release  build,test           4    the e2e cases marked gate: adversaries, faults, small machines, large files
engine       gate     release  build,test           6    the engine's wheel as a user builds it: its tests and conformance over it
interop_short gate     release  build,test           3    gRPC's interop cases with its client in Go, plain and TLS
h2spec       gate     release  build,test           2    h2spec, conformance tests of HTTP/2
browser      gate     release  build,test,browser   1    the status page in a headless Chromium, beside a server under load
clients      gate     release  build,test,clients   20   the clients in other languages (QUANTD_CLIENTS) against the real server, byte for byte
asan         gate     -        build,test           15   tests of core and server, fuzz runs, attacks and load, under ASan and UBSan
tsan         gate     -        build,test           11   the rooms with threads, attacks and load, under ThreadSanitizer
neon         gate     -        build,test,neon      9    the core's unit tests for arm64 (cross-compiled, under qemu)
interop      long     release  build,test,clients   8    gRPC's interop cases with all clients of tests/interop, plain and TLS
checkpoints  long     release  build,test           45   quantctl convert against compressed-tensors, gguf, bitsandbytes and transformers
bench        long     -        build,test           4    a run of a second of each benchmark in C++
tsan_e2e     long     -        build,test           20   all e2e tests against a server under ThreadSanitizer
soak         long     release  build,test           8    clients of all kinds at once, for minutes (QUANTD_SOAK_SECONDS)
fuzz         long     -        build,test,clang     12   libFuzzer, coverage guided: a minute for all targets (QUANTD_FUZZ_SECONDS, QUANTD_FUZZ_RUNS)
lint         long     -        build,test,clang,lint 60   clang-tidy
image        long     release  build,test,image     60   the container image: built for amd64 and arm64, run, probed (as root)
packages     long     release  build,test,image,package 20   the Debian packages: installed, started, purged in a bare Debian (as root)
fresh        long     -        test,fresh           200  both README commands in a bare Debian 12 and 13, and the plain cmake way (as root)
TABLE
}
names() { suites_table | awk '{ print $1 }'; }
column() { suites_table | awk -v suite="$1" -v column="$2" '$1 == suite { print $column }'; }
about() { suites_table | awk -v suite="$1" '$1 == suite { $1 = $2 = $3 = $4 = $5 = ""; sub(/^ */, ""); print }'; }

# run_rooms ROOM...: builds the unit tests of these rooms in the release tree, and runs them.
run_rooms() {
  local room targets=() prefixes=() known
  packages_install build test
  configure_tree release -DQUANTD_BUILD_TESTS=ON
  known=$(ninja -C build/release -t targets all | sed -n 's/^room\.\([a-z_.]*\): phony/\1/p' | tr . /)
  for room in "$@"; do
    room=${room%/}
    room=${room/#core\/src/core}
    grep -qxF "$room" <<<"$known" || die "no unit tests of '$room'; rooms: $(tr '\n' ' ' <<<"$known")"
    targets+=("room.${room//\//.}")
    prefixes+=("${room//\//.}")
  done
  [[ $# -gt 0 ]] || { note "rooms: $(tr '\n' ' ' <<<"$known")" && return; }
  build_tree release "${targets[@]}"
  ctest --test-dir build/release --parallel "$(nproc)" --timeout 300 --output-on-failure --no-tests=error --progress \
    --tests-regex "^($(IFS='|' && echo "${prefixes[*]}"))\\."
}

chosen=() tiers=() changed=''
while [[ $# -gt 0 ]]; do
  case $1 in
    --all) tiers=(default gate long) ;;
    default | gate | long) tiers+=("$1") ;;
    --changed) changed=HEAD ;;
    --changed=*) changed=${1#*=} ;;
    --list) suites_table && exit ;;
    room)
      run_rooms "${@:2}"
      exit
      ;;
    *)
      [[ -n $(column "$1" 1) ]] ||
        die "usage: $0 [default|gate|long|--all] [--changed[=REV]] [--list] [SUITE...] | room [ROOM...]; suites: $(names | tr '\n' ' ')"
      chosen+=("$1")
      ;;
  esac
  shift
done
[[ ${#chosen[@]} -gt 0 || ${#tiers[@]} -gt 0 ]] || tiers=(default)
if [[ ${#tiers[@]} -gt 0 ]]; then
  candidates=$(names)
  if [[ -n $changed ]]; then
    candidates=$(python3 "$here/suites/changed.py" "$changed") || die "no suites for the changes since $changed"
    [[ -n $candidates ]] || { note "nothing has changed since $changed" && exit 0; }
  fi
  for suite in $candidates; do
    [[ " ${tiers[*]} " != *" $(column "$suite" 2) "* ]] || chosen+=("$suite")
  done
fi
[[ ${#chosen[@]} -gt 0 ]] || { note "no suite of this tier can notice the change" && exit 0; }

# What a reader wants to know first.
minutes=0 release_needed=false
for suite in "${chosen[@]}"; do
  minutes=$((minutes + $(column "$suite" 5)))
  [[ $(column "$suite" 3) == release ]] && release_needed=true
done
$release_needed && minutes=$((minutes + 7))
note "${#chosen[@]} suites: about $((minutes / $(nproc) + 1)) min from nothing on $(nproc) CPUs, less where build/ or ccache holds some of it"
# left_out: what the run says about the other tiers, at its beginning and end.
left_out() {
  local tier
  for tier in default gate long; do
    [[ " ${tiers[*]} " == *" $tier "* ]] || note "left out, tier $tier: $(suites_table | awk -v tier="$tier" '$2 == tier { printf "%s ", $1 }')"
  done
}
[[ ${#tiers[@]} -eq 0 ]] || left_out

rm -rf "$RESULTS"
mkdir -p "$RESULTS" "$QUANTD_LOGS"
preparations=() builds=

# The end of this script, however it ends: the sums, and the one line.
summary() {
  local status=$? passed failed
  trap - EXIT
  [[ ${#preparations[@]} -eq 0 ]] || kill "${preparations[@]}" 2>/dev/null
  [[ -z $builds ]] || kill -- "-$builds" 2>/dev/null
  [[ $status -eq 0 ]] || RESULT_SUITE=run fail "the run itself" "ended with $status"
  passed=$(count pass)
  failed=$(count fail)
  step "Results after $((SECONDS / 60)) min $((SECONDS % 60)) s"
  report_suites
  note "slowest cases:"
  report_slowest
  report_lines skip "skipped"
  report_lines fail "FAILED"
  [[ ${#tiers[@]} -eq 0 ]] || left_out
  printf '\n%s passed, %s failed\n' "$passed" "$failed"
  [[ $failed -eq 0 && $passed -gt 0 ]] && exit 0
  exit 1
}
trap summary EXIT
trap 'exit 130' INT TERM

mapfile -t package_groups < <(for suite in "${chosen[@]}"; do column "$suite" 4 | tr ',' '\n'; done | sort -u)
packages_install "${package_groups[@]}"
# Clients are also tested with a name, and the root that debootstrap makes has no /etc/hosts.
getent hosts localhost >/dev/null || {
  note "localhost has no address here: adding it to /etc/hosts"
  echo "127.0.0.1 localhost" | as_root tee -a /etc/hosts >/dev/null
}
# From here on no Python package of the machine's user is available. Suite fresh finds packages that are not declared.
unset PYTHONPATH PYTHONHOME PYTHONSTARTUP
export PYTHONNOUSERSITE=1

# Downloads (Python packages, buf, arm64 libraries) continue while the compiler works; each suite waits for its own.
for suite in "${chosen[@]}"; do
  suite_call "$suite" prepare >"$QUANTD_LOGS/prepare-$suite.log" 2>&1 &
  preparations+=($!)
done

if $release_needed; then
  step "Building release and its tests"
  build_tree release all -- -DQUANTD_BUILD_TESTS=ON || RESULT_SUITE=build fail "build/release" "does not build"
fi

# Meanwhile the trees of later suites are compiled on cores that nobody else uses: most tests wait for something else. On a busy
# machine there are few such cores. Therefore a suite whose turn has come compiles the rest of its tree itself, and the later
# ones continue afterwards.
building=$QUANTD_BUILD/building # the index of the tree's suite
start_builds() {
  set -m
  {
    chrt --idle --pid 0 "$BASHPID"
    for index in "${!chosen[@]}"; do
      [[ $index -ge $1 ]] || continue
      tail --pid="${preparations[index]}" -f /dev/null
      echo "$index" >"$building"
      suite_call "${chosen[index]}" build || break
    done
    echo "${#chosen[@]}" >"$building"
  } >>"$QUANTD_LOGS/builds.log" 2>&1 &
  builds=$!
  set +m
}
# build_now INDEX
build_now() {
  [[ $(<"$building") -le $1 ]] || return
  {
    kill -- "-$builds"
    wait "$builds"
  } 2>/dev/null
  suite_call "${chosen[$1]}" build
  start_builds "$(($1 + 1))"
}
echo 0 >"$building"
: >"$QUANTD_LOGS/builds.log"
start_builds 0

for index in "${!chosen[@]}"; do
  suite=${chosen[index]}
  started=$SECONDS
  step "Suite $suite: $(about "$suite")"
  if wait "${preparations[index]}"; then
    build_now "$index"
    suite_run "$suite"
  else
    tail -n 20 "$QUANTD_LOGS/prepare-$suite.log" | sed 's/^/    | /'
    RESULT_SUITE=$suite fail "preparing $suite" "see build/logs/prepare-$suite.log"
  fi
  note "$(count pass "$suite") passed, $(count fail "$suite") failed, $(count skip "$suite") skipped in $((SECONDS - started)) s"
done
exit 0
