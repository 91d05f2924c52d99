#!/usr/bin/env bash
# The part of run.sh that needs ONNX Runtime: quantd's operations beside its own, and calls beside servers that use it.
# Leaves out, and says why, what this machine can't have. Writes build/bench/peers_kernels.json and peers_rpc.json.
#
# The library is the Python wheel's, at the version of the conformance tests.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../../deploy/packages.sh"
source "$here/../suites/lib.sh"
source "$here/../suites/venv.sh"
cd "$QUANTD_ROOT"
built=$QUANTD_BUILD/release/tests/bench
results=$QUANTD_BUILD/bench
mkdir -p "$results" "$QUANTD_LOGS"

heading() { printf '\n## %s\n\n' "$*"; }

if ! (packages_install test && prepare_venv) >"$QUANTD_LOGS/bench-venv.log" 2>&1; then
  heading "Beside ONNX Runtime: left out, its Python wheel can't be installed; see build/logs/bench-venv.log"
  exit 0
fi
"$VENV/bin/python" tests/bench/peers_models.py "$results/models"
library=$(ls "$VENV"/lib/python3*/site-packages/onnxruntime/capi/libonnxruntime.so.*)

build_tree release peers_rpc peers_kernels peers_callback_server
heading "The Python client beside plain grpc, and AsyncClient beside threads"
"$VENV/bin/python" tests/bench/python_client.py --quantd="$QUANTD_BUILD/release/server/quantd" \
  --json="$results/python_client.json" "$@"
heading "Operations beside ONNX Runtime"
"$built/peers_kernels" --library="$library" --models="$results/models" --json="$results/peers_kernels.json" "$@"
heading "Calls beside other servers: a raw echo, and what one would write with ONNX Runtime in C++ and in Python"
"$built/peers_rpc" --model="$results/models/dynamic_quantize.onnx" --aio_server="$here/peers_aio_server.py" \
  --python="$VENV/bin/python" --callback_server="$built/peers_callback_server" --library="$library" \
  --json="$results/peers_rpc.json" "$@"
