# shellcheck shell=bash
# The status page in a headless Chromium. Its pictures are left in build/status.
source "$SUITES/venv.sh"

prepare() { prepare_venv; }

run() { pytest_suite browser tests/browser -n 1; }
