# shellcheck shell=bash
# What tests/run.sh and the suites in this folder share: how a suite is called and how a result is recorded.
#
# A result is a line in build/results/SUITE.tsv: pass, fail or skip; the case's name; why; seconds. The sums at the end count only these
# lines, so that no case can be lost or counted twice.

SUITES=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
RESULTS=$QUANTD_BUILD/results
VENV=$QUANTD_BUILD/venv
RESULT_SUITE=

result() { printf '%s\t%s\t%s\t%s\n' "$1" "$2" "${3//[$'\t\n']/ }" "${4:-}" >>"$RESULTS/$RESULT_SUITE.tsv"; }
pass() { result pass "$1" "" "${2:-}"; }
fail() {
  result fail "$1" "${2:-}" "${3:-}"
  note "FAILED $1: ${2:-}"
}
skip() { result skip "$1" "$2"; }

# check NAME COMMAND...: one case; it passes if the command succeeds. Its output is shown only if it fails.
check() {
  local name=$1 log status began=$SECONDS
  shift
  log=$QUANTD_LOGS/$RESULT_SUITE-${name//[^A-Za-z0-9.-]/_}.log
  if "$@" >"$log" 2>&1; then
    pass "$name" $((SECONDS - began))
  else
    status=$?
    tail -n 40 "$log" | sed 's/^/    | /'
    fail "$name" "exit $status; ${log#"$QUANTD_ROOT"/}" $((SECONDS - began))
  fi
}

# report_cases: reports lines "pass|fail|skip NAME WHY", separated by tabs, from stdin, one case each.
report_cases() {
  local kind name why
  while IFS=$'\t' read -r kind name why; do
    case $kind in
      pass) pass "$name" ;;
      skip) skip "$name" "$why" ;;
      *) fail "$name" "$why" ;;
    esac
  done
}

# junit NAME FILE: reports the cases of a JUnit report (ctest's or pytest's). A missing or empty report is a failure.
junit() {
  if ! python3 "$SUITES/junit.py" "$2" >>"$RESULTS/$RESULT_SUITE.tsv" 2>"$QUANTD_LOGS/junit.log"; then
    fail "$1" "no results: $(<"$QUANTD_LOGS/junit.log")"
  fi
}

# ctest_tree PRESET [CTEST OPTIONS]: every test of a build tree, one case each.
ctest_tree() {
  local tree=$QUANTD_BUILD/$1 report=$RESULTS/$RESULT_SUITE-$1.xml log=$QUANTD_LOGS/$RESULT_SUITE-$1.log
  shift
  ctest --test-dir "$tree" --parallel "$(nproc)" --timeout 300 --output-on-failure --no-tests=error --output-junit "$report" \
    "$@" 2>&1 | tee "$log" | tee >(show_progress "$RESULT_SUITE" ctest >&2) | grep -E '\*\*\*(Failed|Timeout|Exception|Not Run)'
  junit "ctest" "$report"
}

# pytest_suite NAME PATHS AND OPTIONS: with the virtual environment; one case each. Files run in parallel, with two processes
# per core and one more: most tests wait for something. Cases marked gate belong to suites of that tier, which name them with -m.
pytest_suite() {
  local name=$1 report=$RESULTS/$RESULT_SUITE-$1.xml
  shift
  "$VENV/bin/python" -m pytest -q --tb=short -p no:cacheprovider -n $((2 * $(nproc) + 1)) --dist loadfile \
    --override-ini="markers=gate: in a suite of the gate tier" --junit-xml="$report" "$@" 2>&1 |
    tee "$QUANTD_LOGS/$RESULT_SUITE-$name.log" | tee >(show_progress "$RESULT_SUITE" percent >&2) | tail -n 60 | grep -v '%\]$' | sed 's/^/    /'
  junit "pytest $name" "$report"
}

# suite_call NAME prepare|build|run: in a shell of its own, so that a suite's variables and exits do not affect others. A suite
# defines run; prepare if it downloads something, and build if it has a tree of its own, which its run builds first.
suite_call() {
  local RESULT_SUITE=$1 function=$2
  (
    prepare() { :; }
    build() { :; }
    # shellcheck source=/dev/null
    source "$SUITES/$RESULT_SUITE.sh"
    "$function"
  )
}

# A suite that ends with an error but without a failed case, or that has no case at all, has failed.
suite_run() {
  local status=0 RESULT_SUITE=$1
  suite_call "$1" run || status=$?
  if [[ $status -ne 0 && $(count fail "$1") -eq 0 ]]; then
    fail "suite $1" "ended with $status"
  elif [[ ! -s $RESULTS/$1.tsv ]]; then
    fail "suite $1" "ran no case"
  fi
}

# count KIND [SUITE]: the number of lines of that kind, of all suites or of one.
count() { find "$RESULTS" -name "${2:-*}.tsv" -exec cat {} + | grep -c "^$1"$'\t'; }

report_suites() {
  local file suite
  for file in "$RESULTS"/*.tsv; do
    [[ -e $file ]] || continue
    suite=$(basename "$file" .tsv)
    printf '    %-12s %6s passed %4s failed %4s skipped\n' "$suite" "$(count pass "$suite")" "$(count fail "$suite")" "$(count skip "$suite")"
  done
}

# The ten cases that took longest.
report_slowest() {
  find "$RESULTS" -name '*.tsv' -exec awk -F'\t' '$4 >= 1 { suite = FILENAME; sub(/.*\//, "", suite); sub(/\.tsv$/, "", suite)
    printf "%8.1f s  %s: %s\n", $4, suite, $2 }' {} + | sort -rn | head -n 10 | sed 's/^/    /'
}

# Lines of one kind, at most twenty per suite; skipped cases with the same reason count as one line.
report_lines() {
  local file
  for file in "$RESULTS"/*.tsv; do
    [[ -e $file ]] || continue
    awk -F'\t' -v kind="$1" -v title="$2" -v suite="$(basename "$file" .tsv)" '
      $1 == kind { key = kind == "skip" ? $3 : $2; if (!(key in seen)) order[++n] = key; seen[key]++; name[key] = $2; why[key] = $3 }
      END {
        for (i = 1; i <= n && i <= 20; i++) { k = order[i]
          printf "    %s %s: %s: %s\n", title, suite, (seen[k] > 1 ? seen[k] " cases" : name[k]), why[k] }
        if (n > 20) printf "    %s %s: and %d more\n", title, suite, n - 20
      }' "$file"
  done
}
