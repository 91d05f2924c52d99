# shellcheck shell=bash
# client/go with Debian's Go, the oldest version that it supports; unpacked, so that every machine uses the same one.
GO_CLIENT=$QUANTD_ROOT/client/go
GO_BUILD=$CLIENTS_BUILD/go

go_environment() {
  local root
  root=$(debs_root "$(dpkg --print-architecture)")
  GOROOT=$(find "$root/usr/lib" -maxdepth 1 -name 'go-1.*' -type d | sort -V | tail -n 1)
  # Everything that Go downloads and compiles is in build/, and no newer Go is downloaded.
  export GOROOT PATH=$GOROOT/bin:$PATH GOPATH=$GO_BUILD/path GOCACHE=$GO_BUILD/cache GOBIN=$GO_BUILD/bin GOTOOLCHAIN=local \
    GOFLAGS="-modcacherw -buildvcs=false" GOWORK=off
}

prepare_go() {
  unpack_debs "$(dpkg --print-architecture)" '^golang-' golang-go || return
  go_environment
  go version
  cd "$GO_CLIENT" && go mod download && go test -c -o "$GO_BUILD/client.test" . && go build -o "$GO_BUILD/example" ./example &&
    GOARCH=s390x CGO_ENABLED=0 go test -c -o "$GO_BUILD/s390x.test" .
}

# The lines of go test -v as cases; a test that was skipped here was not run, which is a failure, except for those of TLS if the server has
# none.
go_cases() {
  local skipped=fail
  [[ -n ${TEST_TLS_ADDRESS:-} ]] || skipped=skip
  sed -nE 's/^--- PASS: ([^ ]+).*/pass\t\1\t/p; s/^--- FAIL: ([^ ]+).*/fail\t\1\tsee build\/logs\/clients-go.log/p
    s/^--- SKIP: ([^ ]+).*/'$skipped'\t\1\twas skipped/p; s/^panic: (.*)/fail\tpanic\t\1/p' "$1" | cases go
}

# What a Go user does: `go get` of the module from a proxy, in a separate module. The proxy is a folder with the layout of Go's protocol.
go_get() {
  local module proxy=$GO_BUILD/proxy user=$GO_BUILD/user version=v0.1.0 files
  module=$(sed -n 's/^module //p' "$GO_CLIENT/go.mod")
  rm -rf "$proxy" "$user" "${GOPATH:?}/pkg/mod/cache/download/$module" "$GOPATH/pkg/mod/$module@$version"
  mkdir -p "$proxy/$module/@v" "$user"
  cp "$GO_CLIENT/go.mod" "$proxy/$module/@v/$version.mod" || return
  echo "{\"Version\": \"$version\"}" >"$proxy/$module/@v/$version.info"
  mapfile -t files < <(cd "$GO_CLIENT" && git -c 'safe.directory=*' ls-files --cached --others --exclude-standard)
  (cd "$GO_CLIENT" && python3 - "$proxy/$module/@v/$version.zip" "$module@$version" "${files[@]}" <<'PYTHON') || return
import sys, zipfile
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    for name in sys.argv[3:]:
        archive.write(name, f"{sys.argv[2]}/{name}")
PYTHON
  cp "$GO_CLIENT/example/main.go" "$user/"
  cd "$user" && go mod init user.test/example &&
    GOPROXY=file://$proxy,$(go env GOPROXY) GONOSUMDB=$module go get "$module@$version" && go mod tidy && go build -o example . && ./example
}

# The committed code is the plugins' output for the contract; the version of protoc does not matter.
go_generated() {
  local fresh=$GO_BUILD/generated
  rm -rf "$fresh"
  "$GO_CLIENT/generate.sh" "$fresh" && diff -r -I '^//.*protoc  *v' "$GO_CLIENT/quantdv1" "$fresh" ||
    { echo "run go generate in client/go" && return 1; }
}

# On a machine with the other byte order (Debian: qemu-user-static), against the server, which has the usual one.
go_big_endian() {
  local log=$GO_BUILD/s390x.log
  cd "$GO_CLIENT" && qemu-s390x-static "$GO_BUILD/s390x.test" -test.v -test.run 'TestBytes|TestThere|TestPacking|TestCodes|TestHalf' | tee "$log" &&
    [[ $(grep -c '^--- PASS: ' "$log") -eq 6 ]]
}

run_go() {
  local log=$QUANTD_LOGS/clients-go.log
  go_environment
  check "go: gofmt, go vet" "$QUANTD_ROOT/tests/format.sh" --check go
  check "go: generated code is the contract's" go_generated
  # In its own folder, as go test runs them; at most ten minutes.
  (cd "$GO_CLIENT" && "$GO_BUILD/client.test" -test.v -test.timeout 10m >"$log" 2>&1) || tail -n 30 "$log"
  go_cases "$log"
  check "go: example" "$GO_BUILD/example"
  check "go: go get" go_get
  check "go: README's commands" readme go
  if command -v qemu-s390x-static >/dev/null; then
    check "go: big endian" go_big_endian
  else
    skip "go: big endian" "no qemu-s390x-static"
  fi
}
