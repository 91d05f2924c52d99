#!/usr/bin/env bash
# Measures everything: tests/bench/run.sh [--quick]. Kernels beside the copy that bounds them, then calls beside a raw gRPC
# echo, then both beside ONNX Runtime (peers.sh), always in turns within one run. Prints tables; writes JSON to build/bench/,
# all of it together to results.json. Without the building, under 10 minutes on 2 cores, under 2 with --quick.
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
build_tree release kernels_bench rpc_bench quantd -- -DQUANTD_BUILD_TESTS=ON
rm -rf build/bench && mkdir -p build/bench
printf '\n## Kernels\n'
build/release/tests/bench/kernels_bench "$@" --json=build/bench/kernels.json
printf '\n## Calls\n\n'
build/release/tests/bench/rpc_bench "$@" --json=build/bench/rpc.json
tests/bench/peers.sh "$@"
python3 - build/bench/*.json <<'JOIN' >build/bench/results.json
import json, pathlib, sys
print(json.dumps({pathlib.Path(name).stem: json.load(open(name)) for name in sys.argv[1:]}, indent=1))
JOIN
printf '\nAll figures: build/bench/results.json\n'
