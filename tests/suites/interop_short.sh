# shellcheck shell=bash
source "$SUITES/interop.sh"
INTEROP_CLIENTS=go
