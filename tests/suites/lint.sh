# shellcheck shell=bash
# clang-tidy with .clang-tidy on every file of core, server and client that the release tree compiles.
run() {
  local files
  mapfile -t files < <(git -c 'safe.directory=*' ls-files 'core/*.cc' 'server/*.cc' 'client/*.cc' ':!client/python-core')
  printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c '
    if clang-tidy-19 --quiet --extra-arg=-Wno-unknown-warning-option -p build/release "$0" >"build/logs/lint-${0//\//_}.log" 2>/dev/null; then
      printf "pass\tclang-tidy %s\t\n" "$0"
    else
      printf "fail\tclang-tidy %s\t%s\n" "$0" "$(grep -m1 -E "(warning|error):" "build/logs/lint-${0//\//_}.log")"
    fi' >>"$RESULTS/$RESULT_SUITE.tsv"
}
