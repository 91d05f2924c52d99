#!/usr/bin/env bash
# Makes the picture of the status page in the documents: deploy/status-page.png.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root"
QUANTD_TEST_LOOKS=40 "${PYTHON:-build/venv/bin/python}" -m pytest -q -p no:cacheprovider tests/browser -k shows_the_load
cp build/status/light-1280.png deploy/status-page.png
