#!/usr/bin/env bash
# Measures everything: tests/bench/run.sh [--quick]. Kernels beside the copy that bounds them, then calls beside a raw gRPC
# echo, each pair in turns within one run. Prints tables; writes build/bench/kernels.json and rpc.json.
# About 10 minutes on 2 cores, 2 with --quick. Needs the packages that deploy/quickstart.sh installs.
set -euo pipefail
cd "$(dirname "$0")/../.."
case "${1:-}" in
  "" | --quick) ;;
  *)
    echo "usage: tests/bench/run.sh [--quick]" >&2
    exit 2
    ;;
esac
[[ -f build/release/CMakeCache.txt ]] || cmake --preset release >/dev/null
cmake --build build/release --target kernels_bench rpc_bench quantd
mkdir -p build/bench
echo
echo "## Kernels"
build/release/tests/bench/kernels_bench "$@" --json=build/bench/kernels.json
echo
echo "## Calls"
build/release/tests/bench/rpc_bench "$@" --json=build/bench/rpc.json
