# shellcheck shell=bash
# Debian packages unpacked under build/ instead of installed: for libraries of another architecture and for programs whose
# package would start a service on the machine. apt works on lists of its own, so it needs no right of root and leaves the
# machine as it was.

# debs ARCHITECTURE: the root folder into which packages of that architecture are unpacked.
debs_root() { echo "$QUANTD_BUILD/debs/$1/root"; }

# unpack_debs ARCHITECTURE PATTERN PACKAGE...: unpacks the packages and those that they need, as far as these match PATTERN.
# Several suites prepare at the same time.
unpack_debs() { with_lock "$QUANTD_BUILD/debs/$1/lock" unpack_debs_alone "$@"; }
unpack_debs_alone() {
  local architecture=$1 pattern=$2 state=$QUANTD_BUILD/debs/$1 root apt wanted package
  shift 2
  root=$(debs_root "$architecture")
  mkdir -p "$root" "$state/lists/partial" "$state/archives/partial"
  [[ $(cat "$state/done-$1" 2>/dev/null) == "$*" ]] && return 0
  apt=(apt-get -q -o "APT::Architecture=$architecture" -o "APT::Architectures=$architecture" -o Dir::State="$state"
    -o Dir::State::status=/dev/null -o Dir::Cache="$state" -o Dir::Log="$state" -o Acquire::Languages=none
    -o Acquire::Retries=3 -o Debug::NoLocking=true -o APT::Sandbox::User=)
  [[ -n $(find "$state/lists" -name '*_Packages*' -mmin -600) ]] || "${apt[@]}" update || return
  mapfile -t wanted < <("${apt[@]}" install --simulate --no-install-recommends "$@" |
    awk -v pattern="$pattern" '$1 == "Inst" { sub(/:.*/, "", $2); if ($2 ~ pattern) print $2 }')
  [[ ${#wanted[@]} -gt 0 ]] || return
  rm -f "$state"/archives/*.deb
  (cd "$state/archives" && "${apt[@]}" download "${wanted[@]}") || return
  for package in "${wanted[@]}"; do dpkg-deb --extract "$state/archives/${package}"_*.deb "$root" || return; done
  echo "$*" >"$state/done-$1"
}

# unpack_program PACKAGE PATTERN: for this machine's own architecture. debs_path then adds its programs to PATH.
unpack_program() { unpack_debs "$(dpkg --print-architecture)" "$2" "$1"; }
debs_path() {
  local root
  root=$(debs_root "$(dpkg --print-architecture)")
  PATH=$PATH:$root/usr/bin:$root/usr/sbin
}

# unpack_source PACKAGE: the source that Debian builds the package from, as its authors released it, unpacked under
# build/debs/source; prints the folder.
unpack_source() { with_lock "$QUANTD_BUILD/debs/source/lock" unpack_source_alone "$1"; }
unpack_source_alone() {
  local state=$QUANTD_BUILD/debs/source root apt file
  root=$state/$1
  if [[ ! -e $root/done ]]; then
    rm -rf "$root" && mkdir -p "$root" "$state/lists/partial" "$state/archives/partial" "$state/sources" || return
    # Debian's own lines, in both formats, for sources instead of packages.
    for file in /etc/apt/sources.list /etc/apt/sources.list.d/*.{list,sources}; do
      [[ -f $file ]] && grep -q debian "$file" || continue
      sed 's/^Types:.*/Types: deb-src/; s/^deb /deb-src /' "$file" >"$state/sources/$(basename "$file")" || return
    done
    apt=(apt-get -q -o "Dir::State=$state" -o Dir::State::status=/dev/null -o "Dir::Cache=$state" -o "Dir::Log=$state"
      -o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$state/sources" -o Acquire::Languages=none -o Acquire::Retries=3
      -o Debug::NoLocking=true -o APT::Sandbox::User=)
    { "${apt[@]}" update && cd "$root" && "${apt[@]}" source --download-only "$1"; } >&2 || return
    tar -xf "$root"/*.orig.tar.* --strip-components=1 -C "$root" || return
    touch "$root/done"
  fi
  echo "$root"
}
