# shellcheck shell=bash
run() { python3 "$SUITES/arrows.py" >>"$RESULTS/$RESULT_SUITE.tsv"; }
