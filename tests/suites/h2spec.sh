# shellcheck shell=bash
# h2spec against quantd: tests/interop/h2spec.py contains the cases that differ, with the reasons.
source "$SUITES/debs.sh"
source "$SUITES/gotool.sh"

# The last version in Go's proxy; it does not give the versions of its dependencies.
prepare() {
  build_go_tool h2spec github.com/summerwind/h2spec/cmd/h2spec@v2.2.1+incompatible golang.org/x/net@v0.17.0 github.com/spf13/cobra@v1.7.0 \
    github.com/fatih/color@v1.15.0
}

run() {
  go_tools_path
  report_cases < <(python3 "$QUANTD_ROOT/tests/interop/h2spec.py" "$QUANTD_BUILD/release/server/quantd" "$QUANTD_BUILD/h2spec" \
    2>"$QUANTD_LOGS/$RESULT_SUITE.log" || printf 'fail\th2spec.py\tbuild/logs/%s.log\n' "$RESULT_SUITE")
}
