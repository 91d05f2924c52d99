# shellcheck shell=bash
# grpcurl and ghz, which know the server by reflection alone: the lines of README.md, and what they say about errors.
# Compiled with the Go of go.sh; these are the last releases that it compiles.

prepare_tools() {
  unpack_debs "$(dpkg --print-architecture)" '^golang-' golang-go || return
  go_environment
  go install github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.8.8 && go install github.com/bojand/ghz/cmd/ghz@v0.117.0
}

grpcurl() { "$GOBIN/grpcurl" -plaintext -max-time 60 "$@"; }

# says TEXT COMMAND...: the command's output, of both streams, holds the text.
says() {
  local text=$1 output
  shift
  output=$("$@" 2>&1)
  echo "$output"
  [[ $output == *"$text"* ]] || { echo "does not say $text" && return 1; }
}

tool_values='{"x": {"data_type": "DATA_TYPE_FLOAT", "shape": [3], "float_values": {"values": [-1, 0, 1]}},
  "output_type": "DATA_TYPE_INT8", "symmetry": "SYMMETRY_SYMMETRIC", "output_encoding": "TENSOR_ENCODING_VALUES"}'

tools_values() {
  grpcurl -d "$tool_values" "$QUANTD_ADDRESS" quantd.v1.QuantizationService/DynamicQuantize | tr -d ' \n' >"$GO_BUILD/values.json"
  cat "$GO_BUILD/values.json"
  grep -q '"values":\["-127","0","127"\]' "$GO_BUILD/values.json"
}

# Two items, of which the second fails; one message a line.
tools_stream() {
  printf '{"id": 1, "dynamic_quantize": %s}\n{"id": 2, "dynamic_quantize": {}}\n' "${tool_values//$'\n'/}" |
    grpcurl -d @ "$QUANTD_ADDRESS" quantd.v1.QuantizationService/Stream | tr -d ' \n' >"$GO_BUILD/stream.json"
  cat "$GO_BUILD/stream.json"
  grep -q '"id":"1","dynamic_quantize"' "$GO_BUILD/stream.json" && grep -q '"id":"2","error"' "$GO_BUILD/stream.json"
}

tools_ghz() {
  "$GOBIN/ghz" --insecure --call quantd.v1.QuantizationService.DynamicQuantize -d "$tool_values" -n 500 -c 8 --format json \
    "$QUANTD_ADDRESS" >"$GO_BUILD/ghz.json" || return
  python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(d["statusCodeDistribution"]); assert d["statusCodeDistribution"] == {"OK": 500}' \
    "$GO_BUILD/ghz.json"
}

run_tools() {
  go_environment
  check "tools: grpcurl list" says grpc.health.v1.Health grpcurl "$QUANTD_ADDRESS" list
  check "tools: grpcurl describe" says 'rpc Stream' grpcurl "$QUANTD_ADDRESS" describe quantd.v1.QuantizationService
  check "tools: grpcurl health" says '"status": "SERVING"' grpcurl "$QUANTD_ADDRESS" grpc.health.v1.Health/Check
  check "tools: grpcurl values" tools_values
  check "tools: grpcurl stream" tools_stream
  check "tools: grpcurl error details" says '"field": "x"' grpcurl -d '{}' "$QUANTD_ADDRESS" quantd.v1.QuantizationService/Quantize
  check "tools: grpcurl describes google.rpc" says 'repeated .google.rpc.BadRequest.FieldViolation field_violations = 1;' \
    grpcurl "$QUANTD_ADDRESS" describe google.rpc.BadRequest
  check "tools: ghz" tools_ghz
}
