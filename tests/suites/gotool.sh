# shellcheck shell=bash
# Programs in Go, from the Go module proxy into build/tools: build_go_tool. Needs debs.sh.

# go_program: a Go compiler: the machine's, or Debian's unpacked under build/.
go_program() {
  command -v go && return
  unpack_debs "$(dpkg --print-architecture)" '^golang' golang-go >&2 || return
  echo "$(debs_root "$(dpkg --print-architecture)")/usr/lib/go/bin/go"
}

# build_go_tool NAME PACKAGE@VERSION: build/tools/bin/NAME, unless the machine has the program. The version must be one that
# Debian 12's Go (1.19) builds. Only the program is kept: sources and intermediate files are a gigabyte.
build_go_tool() { command -v "$1" >/dev/null || with_lock "$QUANTD_BUILD/tools/$1.lock" build_go_tool_alone "$@"; }
build_go_tool_alone() {
  local tools=$QUANTD_BUILD/tools go
  mkdir -p "$tools/bin"
  [[ -x $tools/bin/$1 && $(cat "$tools/$1.version" 2>/dev/null) == "$2" ]] && return
  go=$(go_program | tail -n 1) || return
  # GOROOT is where Debian's packages would be installed, and here they are elsewhere.
  env -u GOFLAGS -u GOOS -u GOARCH GOROOT="$(dirname "$(dirname "$(readlink -f "$go")")")" GOTOOLCHAIN=local CGO_ENABLED=0 \
    GOPATH="$tools/go" GOCACHE="$tools/cache" GOBIN="$tools/bin" "$go" install -modcacherw -trimpath -ldflags='-s -w' "$2" || return
  rm -rf "$tools/go" "$tools/cache"
  echo "$2" >"$tools/$1.version"
}
go_tools_path() { PATH=$PATH:$QUANTD_BUILD/tools/bin; }
