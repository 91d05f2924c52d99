# shellcheck shell=bash
tracked() { git -c 'safe.directory=*' ls-files -z "$@"; }

run() {
  check "clang-format" bash -c 'xargs -0 clang-format-19 --dry-run --Werror' < <(tracked '*.h' '*.cc' '*.inc')
  check "shellcheck" bash -c 'xargs -0 shellcheck --severity=warning' < <(tracked '*.sh' .ci/run)
  check "Python parses" bash -c 'xargs -0 python3 -c "import ast, sys; [ast.parse(open(f).read(), f) for f in sys.argv[1:]]"' < <(tracked '*.py')
}
