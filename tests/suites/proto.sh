# shellcheck shell=bash
buf=$QUANTD_BUILD/buf/node_modules/.bin/buf

prepare() {
  [[ $("$buf" --version 2>/dev/null) == 1.75.0 ]] ||
    npm install --prefix "$QUANTD_BUILD/buf" --no-audit --no-fund --no-update-notifier @bufbuild/buf@1.75.0
}

# A change that is meant to break the contract (before the first release) writes the image anew:
#   protoc -I proto --include_imports -o tests/golden/contract.binpb $(cd proto && find . -name '*.proto')
run() {
  check "buf format, buf lint" tests/format.sh --check proto
  check "buf breaking" "$buf" breaking proto --against tests/golden/contract.binpb
  # A contract with one changed field number must not pass: this tests the check.
  local changed=$QUANTD_BUILD/results/proto-changed
  rm -rf "$changed" && cp -r proto "$changed"
  sed -i 's/bytes raw_data = 3;/bytes raw_data = 33;/' "$changed/quantd/v1/tensor.proto"
  check "buf breaking sees a changed field number" bash -c '! "$@" >/dev/null' _ "$buf" breaking "$changed" \
    --against tests/golden/contract.binpb
}
