# shellcheck shell=bash
run() { ctest_tree release; }
