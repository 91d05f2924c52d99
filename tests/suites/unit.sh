# shellcheck shell=bash
# All but the benchmarks, which suite bench builds.
run() { ctest_tree release --exclude-regex '^bench\.'; }
