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
  cd "$GO_CLIENT" && go mod download && go test -c -o "$GO_BUILD/client.test" .
}

# The committed code is the plugins' output for the contract; the version of protoc does not matter.
go_generated() {
  local fresh=$GO_BUILD/generated
  rm -rf "$fresh"
  "$GO_CLIENT/generate.sh" "$fresh" && diff -r -I '^//.*protoc  *v' "$GO_CLIENT/quantdv1" "$fresh" ||
    { echo "run go generate in client/go" && return 1; }
}

run_go() {
  local log=$QUANTD_LOGS/clients-go.log
  go_environment
  check "go: gofmt, go vet" "$QUANTD_ROOT/tests/format.sh" --check go
  check "go: generated code is the contract's" go_generated
  # In its own folder, as go test runs them; at most ten minutes. A test that was skipped here was not run, which is a failure.
  (cd "$GO_CLIENT" && "$GO_BUILD/client.test" -test.v -test.timeout 10m >"$log" 2>&1) || tail -n 30 "$log"
  sed -nE 's/^--- PASS: ([^ ]+).*/pass\t\1\t/p; s/^--- FAIL: ([^ ]+).*/fail\t\1\tsee build\/logs\/clients-go.log/p
    s/^--- SKIP: ([^ ]+).*/fail\t\1\twas skipped/p; s/^panic: (.*)/fail\tpanic\t\1/p' "$log" | cases go
  check "go: README's commands" readme go
}
