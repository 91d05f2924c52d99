# shellcheck shell=bash
seconds=${QUANTD_FUZZ_SECONDS:-60}

run() {
  local tree=$QUANTD_BUILD/fuzz/tests/fuzz corpus=$QUANTD_BUILD/fuzz/corpus
  build_tree fuzz request_fuzzer request_fuzz_test
  mkdir -p "$corpus"
  check "a corpus of generated requests" "$tree/request_fuzz_test" 2000 "$corpus"
  note "fuzzing for $seconds s"
  check "libFuzzer finds nothing" "$tree/request_fuzzer" "-max_total_time=$seconds" "-artifact_prefix=$QUANTD_BUILD/fuzz/" "$corpus"
}
