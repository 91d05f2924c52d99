# shellcheck shell=bash
# QUANTD_FUZZ_RUNS: that many executions of each target, however long they take (100000000 takes a night); otherwise all of them together
# take QUANTD_FUZZ_SECONDS.
targets=(request plan http2)
seconds=$((${QUANTD_FUZZ_SECONDS:-60} / ${#targets[@]}))

run() {
  local tree=$QUANTD_BUILD/fuzz/tests/fuzz target corpus known limit=-max_total_time=$seconds
  [[ -z ${QUANTD_FUZZ_RUNS:-} ]] || limit=-runs=$QUANTD_FUZZ_RUNS
  build_tree fuzz fuzzers
  for target in "${targets[@]}"; do
    corpus=$QUANTD_BUILD/fuzz/corpus/$target
    mkdir -p "$corpus"
    known=$QUANTD_ROOT/tests/fuzz/corpus/$target
    [[ ! -d $known ]] || cp "$known"/* "$corpus"
    check "$target: a corpus of generated inputs" "$tree/${target}_fuzz_test" 2000 "$corpus"
    note "fuzzing $target: $limit"
    # AddressSanitizer keeps freed memory for a while, which counts as the target's: it is not a leak.
    check "$target: libFuzzer finds nothing" "$tree/${target}_fuzzer" "$limit" -rss_limit_mb=4096 \
      "-artifact_prefix=$QUANTD_BUILD/fuzz/$target-" "$corpus"
  done
}
