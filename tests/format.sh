#!/usr/bin/env bash
# Formats and lints the files that git tracks, and new ones, in every language.
#
#   tests/format.sh                      rewrites what a formatter would rewrite, and reports what has to be fixed by hand
#   tests/format.sh --check              rewrites nothing
#   tests/format.sh [--check] cpp shell  these languages only
#
# Ends with 1 if something is left to fix. If this machine lacks a language's tool, a line says so and the language is left out; but if it
# was named on the command line it fails, so that a suite cannot pass without having looked.

set -uo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../deploy/lib.sh"
cd "$QUANTD_ROOT" || exit 1
# Tools that the suites format and proto install.
PATH=$QUANTD_BUILD/venv/bin:$QUANTD_BUILD/buf/node_modules/.bin:$PATH

languages=(cpp java python shell proto go rust javascript)
checking=false chosen=() status=0
for argument in "$@"; do
  if [[ $argument == --check ]]; then
    checking=true
  elif [[ " ${languages[*]} " == *" $argument "* ]]; then
    chosen+=("$argument")
  else
    die "usage: $0 [--check] [LANGUAGE...]; languages: ${languages[*]}"
  fi
done

clang_format=(clang-format-19 -i) ruff=(ruff check --quiet --no-cache --fix) buf=(buf format --write) gofmt=(gofmt -w) rustfmt=(rustfmt)
if $checking; then
  clang_format=(clang-format-19 --dry-run --Werror) ruff=(ruff check --quiet --no-cache) buf=(buf format --diff --exit-code)
  gofmt=(gofmt -d) rustfmt=(rustfmt --check)
fi

# each PATTERNS... -- COMMAND...: runs the command with the files of these patterns.
each() {
  local patterns=() file files=()
  while [[ $1 != -- ]]; do patterns+=("$1") && shift; done
  shift
  while IFS= read -r -d '' file; do [[ -f $file ]] && files+=("$file"); done < <(
    git -c 'safe.directory=*' ls-files -z --cached --others --exclude-standard "${patterns[@]}"
  )
  "$@" "${files[@]}"
}

# One line per language: its tool, where that comes from, and the command.
needs() {
  missing=
  command -v "$1" >/dev/null || missing="no $1 ($2)"
  [[ -z $missing ]]
}

format_cpp() {
  needs clang-format-19 "deploy/packages.sh install test" && each '*.h' '*.cc' '*.inc' '*.c' -- "${clang_format[@]}"
}
format_java() {
  needs clang-format-19 "deploy/packages.sh install test" && each '*.java' -- "${clang_format[@]}"
}
format_python() {
  needs ruff "./tests/run.sh format installs it" && each '*.py' -- "${ruff[@]}"
}
format_shell() {
  needs shellcheck "deploy/packages.sh install test" && each '*.sh' .ci/run -- shellcheck --severity=warning
}
format_proto() {
  needs buf "./tests/run.sh proto installs it" && "${buf[@]}" proto && buf lint proto
}
# gofmt ends with 0 whatever it finds.
format_go() {
  needs go "deploy/packages.sh does not install it" && "${gofmt[@]}" client/go && [[ -z $(gofmt -l client/go) ]] && (cd client/go && go vet ./...)
}
format_rust() {
  needs rustfmt "it comes with rustup" && each 'client/rust/*.rs' -- "${rustfmt[@]}" --edition=2021 --config-path=client/rust
}
format_javascript() {
  needs node "deploy/packages.sh install clients" && each '*.mjs' '*.js' -- node_reads
}
node_reads() {
  local file
  for file in "$@"; do node --check "$file" || return; done
}
for language in "${chosen[@]:-${languages[@]}}"; do
  if "format_$language"; then
    note "$language: in order"
  elif [[ -n $missing && ${#chosen[@]} -eq 0 ]]; then
    note "$language: not looked at: $missing"
  else
    note "$language: ${missing:-to be mended by hand}"
    status=1
  fi
done
exit "$status"
