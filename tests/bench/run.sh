#!/usr/bin/env bash
# Measures everything: tests/bench/run.sh [--quick]. Kernels and operations beside the copy that bounds them, then calls beside
# a raw gRPC echo, then both beside ONNX Runtime (peers.sh), always in turns within one run. Prints tables, and at the end what
# they say about the project's goals; writes JSON to build/bench/, all of it together to results.json.
# Without the building, under 10 minutes on 2 cores, under 2 with --quick.
set -euo pipefail
source "$(dirname "$0")/../../deploy/packages.sh"
cd "$QUANTD_ROOT"
case "${1:-}" in
  "" | --quick) ;;
  *)
    echo "usage: tests/bench/run.sh [--quick]" >&2
    exit 2
    ;;
esac
packages_install build test
build_tree release kernels_bench operations_bench scaling_bench rpc_bench quantd -- -DQUANTD_BUILD_TESTS=ON
built=build/release/tests/bench
rm -rf build/bench && mkdir -p build/bench
begin=$SECONDS
printf '\n## Kernels\n'
"$built/kernels_bench" "$@" --json=build/bench/kernels.json
printf '\n## Operations\n\n'
"$built/operations_bench" "$@" --json=build/bench/operations.json
printf '\n## Operations by several threads\n\n'
"$built/scaling_bench" "$@" --json=build/bench/scaling.json
printf '\n## Calls\n\n'
"$built/rpc_bench" "$@" --json=build/bench/rpc.json
tests/bench/peers.sh "$@"
tests/bench/engine.sh "$@"
printf '\n## Goals\n\n'
python3 tests/bench/summary.py build/bench
python3 - build/bench/*.json <<'JOIN' >build/bench/results.json
import json, pathlib, sys
print(json.dumps({pathlib.Path(name).stem: json.load(open(name)) for name in sys.argv[1:]}, indent=1))
JOIN
printf '\nAll figures: build/bench/results.json; measured in %d s\n' $((SECONDS - begin))
