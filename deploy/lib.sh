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
# PROGRESS is "TOTAL REGEX": lines that match are counted up to TOTAL; or "ninja": its own [n/m]; or "percent": pytest's [ n%];
# or "ctest": its n/m; or "" for none. If the command fails, the end of its log is printed and the shell ends.
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

# Reads a command's output and prints how far it is and for how long it will still run: at each tenth, and where that takes long,
# each 20 s. The shell reads it, because Debian's awk (mawk) waits for 4,096 bytes before it looks at a line.
show_progress() {
  local name=$1 progress=$2 line done=0 all=0 tenth=-1 began=$EPOCHSECONDS last=$EPOCHSECONDS left told
  local -A pattern=([ninja]='^\[([0-9]+)/([0-9]+)\]' [ctest]='^ *([0-9]+)/([0-9]+) Test +#' [percent]='\[ *([0-9]+)(%)\]$')
  while IFS= read -r line; do
    case $progress in
      ninja | ctest | percent) [[ $line =~ ${pattern[$progress]} ]] && done=${BASH_REMATCH[1]} all=${BASH_REMATCH[2]/\%/100} ;;
      [1-9]*' '*) [[ $line =~ ${progress#* } ]] && done=$((done + 1)) all=${progress%% *} ;;
      *) continue ;;
    esac
    ((all > 0 && done > 0)) || continue
    ((10 * done / all > tenth || EPOCHSECONDS - last >= 20 && done > told)) || continue
    tenth=$((10 * done / all)) told=$done last=$EPOCHSECONDS
    left=$(((EPOCHSECONDS - began) * (all - done) / done))
    if ((left >= 90)); then left=", about $(((left + 30) / 60)) min left"; elif ((left >= 5)); then left=", about $left s left"; else left=; fi
    printf '    %s: %d of %d%s\n' "$name" "$done" "$all" "$left"
  done
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

# configure_tree PRESET [CMAKE_OPTIONS...]: build/PRESET, if it is new or has not got these options. Options of earlier runs stay.
configure_tree() {
  local preset=$1 tree=$QUANTD_BUILD/$1 option options=()
  shift
  if [[ -f $tree/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$QUANTD_ROOT" "$tree/CMakeCache.txt"; then
    note "build/$preset was made for another folder: starting it afresh"
    rm -rf "$tree"
  fi
  for option in "$@"; do
    grep -qxF -e "$option" "$tree/.configured" 2>/dev/null || options+=("$option")
  done
  [[ -f $tree/build.ninja && ${#options[@]} -eq 0 ]] && return
  logged "configure-$preset" "" cmake -S "$QUANTD_ROOT" --preset "$preset" "$@"
  for option in "${options[@]}"; do
    sed -i "/^${option%%=*}=/d" "$tree/.configured" 2>/dev/null
    echo "$option" >>"$tree/.configured"
  done
}

# build_tree PRESET TARGETS... [-- CMAKE_OPTIONS...]: configures build/PRESET and builds the targets. For a tree that is up to date,
# ninja only looks at the files. If two build one tree, the second waits.
build_tree() { with_lock "$QUANTD_BUILD/$1.lock" build_tree_alone "$@" || exit; }
build_tree_alone() {
  local preset=$1 targets=() tree=$QUANTD_BUILD/$1 start=$SECONDS
  shift
  while [[ $# -gt 0 && $1 != -- ]]; do targets+=("$1") && shift; done
  [[ $# -gt 0 ]] && shift
  configure_tree "$preset" "$@" || return
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
