# shellcheck shell=bash
# Shell functions that quickstart.sh, packages.sh and tests/run.sh share: messages, progress of long steps, and the
# release build. Sourced, never run. Bash, and nothing that a bare Debian lacks.

QUANTD_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
QUANTD_BUILD=$QUANTD_ROOT/build
QUANTD_LOGS=$QUANTD_BUILD/logs
# The core's kernels compile to the same for the server and for the wheel: without this, ccache would store them once for each folder.
export CCACHE_NOHASHDIR=1

step() { printf '\n==> %s\n' "$*"; }
note() { printf '    %s\n' "$*"; }
die() {
  printf '%s: %s\n' "$(basename "$0")" "$*" >&2
  exit 1
}

# logged NAME PROGRESS COMMAND...: runs a long command with its output in build/logs/NAME.log and shows its progress.
# PROGRESS is "TOTAL REGEX": one line at each tenth of TOTAL lines that match; or "ninja": its own [n/m]; or "" for none.
# If the command fails, the end of its log is printed and the shell ends.
logged() {
  local name=$1 progress=$2 log=$QUANTD_LOGS/$1.log status
  shift 2
  mkdir -p "$QUANTD_LOGS"
  { "$@" </dev/null 2>&1 && echo 0 >"$log.status" || echo $? >"$log.status"; } | tee "$log" |
    show_progress "$name" "$progress"
  status=$(<"$log.status")
  rm -f "$log.status"
  if [[ $status -ne 0 ]]; then
    tail -n 40 "$log" | sed 's/^/    | /' >&2
    die "$name failed (exit $status); its whole output is in ${log#"$QUANTD_ROOT"/}"
  fi
}

# Reads a command's output and prints at most about ten lines of it; nothing while a step is silent.
show_progress() {
  awk -v name="$1" -v progress="$2" '
    BEGIN { split(progress, part, " "); total = part[1]; pattern = substr(progress, length(part[1]) + 2) }
    total == "ninja" && match($0, /^\[[0-9]+\/[0-9]+\]/) {
      split(substr($0, 2, RLENGTH - 2), n, "/"); tell(n[1], n[2]); next
    }
    total + 0 > 0 && $0 ~ pattern { tell(++seen, total) }
    function tell(done, all, tenth) {
      tenth = int(10 * done / all)
      if (tenth > shown) { shown = tenth; printf "    %s: %d of %d\n", name, done, all; fflush() }
    }'
}

# with_lock FILE COMMAND...: runs the command while no other shell holds FILE's lock. The command gets a shell of its own, so
# that the lock ends with it: a descriptor left open in the caller would make the caller's next lock wait for the caller.
with_lock() (
  mkdir -p "$(dirname "$1")"
  exec {lock}>"$1"
  flock "$lock"
  shift
  "$@"
)

# build_tree PRESET TARGETS... [-- CMAKE_OPTIONS...]: configures build/PRESET if it is new (or its options changed) and builds the targets.
# For a tree that is up to date, ninja only looks at the files. If two build one tree, the second waits.
build_tree() { with_lock "$QUANTD_BUILD/$1.lock" build_tree_alone "$@" || exit; }
build_tree_alone() {
  local preset=$1 targets=() options=() tree stamp start=$SECONDS
  shift
  while [[ $# -gt 0 && $1 != -- ]]; do targets+=("$1") && shift; done
  [[ $# -gt 0 ]] && shift && options=("$@")
  tree=$QUANTD_BUILD/$preset
  stamp=$tree/.configured
  if [[ -f $tree/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$QUANTD_ROOT" "$tree/CMakeCache.txt"; then
    note "build/$preset was made for another folder: starting it afresh"
    rm -rf "$tree"
  fi
  # Options of an earlier run stay; only options that this run names decide whether to configure again.
  if [[ ! -f $tree/build.ninja ]] || { [[ ${#options[@]} -gt 0 ]] && [[ $(cat "$stamp" 2>/dev/null) != "${options[*]}" ]]; }; then
    logged "configure-$preset" "" cmake -S "$QUANTD_ROOT" --preset "$preset" "${options[@]}"
    echo "${options[*]}" >"$stamp"
  fi
  if ninja -C "$tree" -n "${targets[@]}" 2>/dev/null | tail -n 1 | grep -q 'no work to do'; then
    note "build/$preset is up to date: nothing to build"
  else
    note "compiling into build/$preset (the whole output: build/logs/build-$preset.log)"
    logged "build-$preset" ninja ninja -C "$tree" "${targets[@]}"
    note "built in $((SECONDS - start)) s"
  fi
}

# target_triplet ARCHITECTURE: the name of Debian's amd64 or arm64 in compilers and in the paths of libraries.
target_triplet() {
  case $1 in
    amd64) echo x86_64-linux-gnu ;;
    arm64) echo aarch64-linux-gnu ;;
    *) die "no architecture '$1': amd64 or arm64" ;;
  esac
}

# build_for ARCHITECTURE TARGETS...: a release build for this machine's own or another architecture, whose libraries are installed in
# addition (packages.sh cross). The tree is build/release or build/release-ARCHITECTURE.
build_for() {
  local architecture=$1 libraries
  shift
  if [[ $architecture == "$(dpkg --print-architecture)" ]]; then
    build_tree release "$@" -- -DQUANTD_BUILD_TESTS=OFF
    return
  fi
  libraries=/usr/lib/$(target_triplet "$architecture")
  PKG_CONFIG_LIBDIR=$libraries/pkgconfig:/usr/share/pkgconfig build_tree "release-$architecture" "$@"
}
