# shellcheck shell=bash
# The rooms in which a client's bytes become requests, with AddressSanitizer and UBSan: the part of suite asan that finds most for its time.
source "$SUITES/asan.sh"
rooms=(memory wire admission transport)
fuzzers=(request http2)
others=()

run() { sanitized_rooms; }
