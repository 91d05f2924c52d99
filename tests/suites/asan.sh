# shellcheck shell=bash
# Code that handles bytes from clients: core, the server's rooms up to the wire, and a server under attack and load, with AddressSanitizer
# and UBSan.
source "$SUITES/e2e.sh"

rooms=(access loop memory net regions wire operations admission http transport rpc)
fuzzers=(request http2)

others=(tests/core/all quantd)

build() {
  build_tree asan "${rooms[@]/#/room.server.}" "${fuzzers[@]/%/_fuzz_test}" "${others[@]}" -- "-DCMAKE_CXX_FLAGS_RELWITHDEBINFO=-O1 -g1"
}

# sanitized_rooms PREFIX...: their cases, and those with another prefix.
sanitized_rooms() {
  local IFS='|'
  build
  # Abseil's tables poison their free places; Debian's library, which is compiled without sanitizer, does not undo that.
  export UBSAN_OPTIONS=print_stacktrace=1:halt_on_error=1 ASAN_OPTIONS=detect_stack_use_after_return=1:allow_user_poisoning=0
  export QUANTD_TEST_SECONDS=${QUANTD_TEST_SECONDS:-2}
  # The excluded ones count every operator new, which the sanitizer replaces; or they leave no descriptors free, and UBSan opens
  # a pipe to look at an object.
  ctest_tree asan --exclude-regex '\.WireMemoryTest\.|NoDescriptorsLeft' \
    --tests-regex "^(${*:+$*|}fuzz\.(${fuzzers[*]})$|server\.(${rooms[*]})\.)"
}

run() {
  sanitized_rooms 'core\.'
  sanitized_e2e asan tests/e2e/test_{hostile,overload,limits,stream}.py
}
