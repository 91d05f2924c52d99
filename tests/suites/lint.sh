# shellcheck shell=bash
# clang-tidy with .clang-tidy on every file of core, server and client, each compiled by itself: in a tree that compiles the files of a room
# together, clang-tidy has to guess how. Only the generated headers of this tree are built.
build() {
  local headers
  build_tree lint proto/generated/quantd/v1/tensor.pb.h
  mapfile -t headers < <(ninja -C "$QUANTD_BUILD/lint" -t targets all | sed -n 's/^\([^/].*\.pb\.h\): .*/\1/p')
  build_tree lint "${headers[@]}"
}

run() {
  local files
  build
  mapfile -t files < <(git -c 'safe.directory=*' ls-files 'core/*.cc' 'server/*.cc' 'client/*.cc' ':!client/python-core')
  printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "$(nproc)" bash -c '
    if clang-tidy-19 --quiet -p build/lint "$0" >"build/logs/lint-${0//\//_}.log" 2>/dev/null; then
      printf "pass\tclang-tidy %s\t\n" "$0"
    else
      printf "fail\tclang-tidy %s\t%s\n" "$0" "$(grep -m1 -E "(warning|error):" "build/logs/lint-${0//\//_}.log")"
    fi' >>"$RESULTS/$RESULT_SUITE.tsv"
}
