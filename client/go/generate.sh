#!/bin/sh
# generate.sh FOLDER: generates code from the contract, with protoc (Debian 12's and 13's is 3.21.12) and the two plugins below.
# `go generate` writes it into quantdv1; a test writes it elsewhere and compares.
set -eu
output=$(mkdir -p "$1" && cd "$1" && pwd)
cd "$(dirname "$0")"
module=$(sed -n 's/^module //p' go.mod)
export GOBIN="${GOBIN:-$(go env GOPATH)/bin}"
go install google.golang.org/protobuf/cmd/protoc-gen-go@v1.33.0
go install google.golang.org/grpc/cmd/protoc-gen-go-grpc@v1.3.0
PATH=$GOBIN:$PATH protoc -I ../../proto --go_out="$output" --go-grpc_out="$output" \
  --go_opt="module=$module/quantdv1" --go-grpc_opt="module=$module/quantdv1" \
  quantd/v1/tensor.proto quantd/v1/quantization.proto
