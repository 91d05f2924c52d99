#!/usr/bin/env bash
# The engine in Python beside the C++ core and ONNX Runtime, in one process and in turns. Writes build/bench/engine.json.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../../deploy/packages.sh"
source "$here/../suites/lib.sh"
cd "$QUANTD_ROOT"
mkdir -p "$QUANTD_BUILD/bench" "$QUANTD_LOGS"

if ! (packages_install build test && suite_call engine prepare && suite_call engine build) >"$QUANTD_LOGS/bench-engine.log" 2>&1; then
  printf '\n## The engine in Python: left out, it can not be built or installed; see build/logs/bench-engine.log\n'
  exit 0
fi
build_tree release engine_core -- -DQUANTD_BUILD_TESTS=ON
printf '\n## The engine in Python beside the core and ONNX Runtime\n\n'
"$QUANTD_BUILD/venv-engine/bin/python" "$here/engine_bench.py" --core="$QUANTD_BUILD/release/tests/bench/libengine_core.so" \
  --json="$QUANTD_BUILD/bench/engine.json" "$@"

printf '\n## Embeddings in Python beside the packages whose codes they are\n\n'
"$QUANTD_BUILD/venv-engine/bin/python" "$here/embeddings_bench.py"
