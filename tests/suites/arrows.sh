# shellcheck shell=bash
run() {
  python3 "$SUITES/arrows.py" >>"$RESULTS/$RESULT_SUITE.tsv"
  check "every row of changed.py fits a file and a suite" python3 "$SUITES/changed.py" --check
}
