# shellcheck shell=bash
run() {
  local file
  while read -r file; do check "clang-format $file" clang-format-19 --dry-run --Werror "$file"; done \
    < <(git ls-files '*.h' '*.cc' '*.inc')
  while read -r file; do check "shellcheck $file" shellcheck --severity=warning "$file"; done < <(git ls-files '*.sh')
  while read -r file; do check "python syntax $file" python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read())' "$file"; done \
    < <(git ls-files '*.py')
}
