# shellcheck shell=bash
# grpcurl and ghz, which know the server by reflection alone: the lines of README.md, and what they say about errors.
# The last releases that Debian 12's Go compiles.
source "$SUITES/gotool.sh"

prepare_tools() {
  build_go_tool grpcurl github.com/fullstorydev/grpcurl/cmd/grpcurl@v1.8.8 && build_go_tool ghz github.com/bojand/ghz/cmd/ghz@v0.117.0
}

grpcurl() { command grpcurl -plaintext -max-time 60 "$@"; }

# says TEXT COMMAND...: the command's output, on both streams, contains the text.
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
  grpcurl -d "$tool_values" "$QUANTD_ADDRESS" quantd.v1.QuantizationService/DynamicQuantize | tr -d ' \n' >"$CLIENTS_BUILD/tools/values.json"
  cat "$CLIENTS_BUILD/tools/values.json"
  grep -q '"values":\["-127","0","127"\]' "$CLIENTS_BUILD/tools/values.json"
}

# Two items, the second of which fails; one message per line.
tools_stream() {
  printf '{"id": 1, "dynamic_quantize": %s}\n{"id": 2, "dynamic_quantize": {}}\n' "${tool_values//$'\n'/}" |
    grpcurl -d @ "$QUANTD_ADDRESS" quantd.v1.QuantizationService/Stream | tr -d ' \n' >"$CLIENTS_BUILD/tools/stream.json"
  cat "$CLIENTS_BUILD/tools/stream.json"
  grep -q '"id":"1","dynamic_quantize"' "$CLIENTS_BUILD/tools/stream.json" && grep -q '"id":"2","error"' "$CLIENTS_BUILD/tools/stream.json"
}

tools_ghz() {
  ghz --insecure --call quantd.v1.QuantizationService.DynamicQuantize -d "$tool_values" -n 500 -c 8 --format json \
    "$QUANTD_ADDRESS" >"$CLIENTS_BUILD/tools/ghz.json" || return
  python3 -c 'import json, sys; d = json.load(open(sys.argv[1])); print(d["statusCodeDistribution"]); assert d["statusCodeDistribution"] == {"OK": 500}' \
    "$CLIENTS_BUILD/tools/ghz.json"
}

run_tools() {
  go_tools_path
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
