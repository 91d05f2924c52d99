# shellcheck shell=bash
# Builds Go programs from the Go module proxy into build/tools: build_go_tool. Needs debs.sh.

# go_program: Debian's Go compiler, unpacked under build/.
go_program() {
  unpack_debs "$(dpkg --print-architecture)" '^golang' golang-go >&2 || return
  echo "$(debs_root "$(dpkg --print-architecture)")/usr/lib/go/bin/go"
}

# build_go_tool NAME PACKAGE@VERSION [MODULE@VERSION...]: build/tools/bin/NAME. The version must be one that Debian 12's Go
# (1.19) can build, with these versions of its dependencies where it does not give them itself. Only the program is kept:
# sources and intermediate files take a gigabyte.
build_go_tool() { with_lock "$QUANTD_BUILD/tools/$1.lock" build_go_tool_alone "$@"; }
build_go_tool_alone() {
  local tools=$QUANTD_BUILD/tools name=$1 versions=${*:2} package=${2%@*} modules=("${@:2}") work go
  work=$tools/$name.work
  [[ -x $tools/bin/$name && $(cat "$tools/$name.version" 2>/dev/null) == "$versions" ]] && return
  go=$(go_program | tail -n 1) || return
  rm -rf "$work" && mkdir -p "$tools/bin" "$work/module" || return
  (
    cd "$work/module" || exit
    unset GOFLAGS GOOS GOARCH
    # GOROOT is the place where Debian's packages would be installed, but here they are elsewhere.
    GOROOT=$(dirname "$(dirname "$(readlink -f "$go")")")
    export GOROOT GOTOOLCHAIN=local CGO_ENABLED=0 GOPATH=$work/go GOCACHE=$work/cache
    "$go" mod init example.com/tool && "$go" get -modcacherw "${modules[@]}" &&
      "$go" build -modcacherw -trimpath -ldflags='-s -w' -o "$tools/bin/$name" "$package"
  ) || return
  rm -rf "$work"
  echo "$versions" >"$tools/$name.version"
}
# go_module_files FOLDER MODULE@VERSION PATH...: copies files of a module into build/tools/FOLDER.
go_module_files() { with_lock "$QUANTD_BUILD/tools/$1.lock" go_module_files_alone "$@"; }
go_module_files_alone() {
  local folder=$QUANTD_BUILD/tools/$1 stamp=$QUANTD_BUILD/tools/$1/${2//\//_} work=$QUANTD_BUILD/tools/$1.work go path
  [[ $(cat "$stamp" 2>/dev/null) == "${*:3}" ]] && return
  go=$(go_program | tail -n 1) || return
  rm -rf "$work" && mkdir -p "$work" "$folder" || return
  (
    cd "$work" || exit
    unset GOFLAGS
    GOROOT=$(dirname "$(dirname "$(readlink -f "$go")")")
    export GOROOT GOTOOLCHAIN=local GOPATH=$work/go
    "$go" mod download -modcacherw "$2" || exit
    for path in "${@:3}"; do cp "$work/go/pkg/mod/$2/$path" "$folder" || exit; done
  ) || return
  rm -rf "$work"
  echo "${*:3}" >"$stamp"
}
go_tools_path() { PATH=$PATH:$QUANTD_BUILD/tools/bin; }
