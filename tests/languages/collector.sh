# shellcheck shell=bash
# A collector that receives quantd's spans: Jaeger as a single program, the last release that Debian 12's Go compiles.
source "$SUITES/gotool.sh"

prepare_collector() {
  build_go_tool all-in-one github.com/jaegertracing/jaeger/cmd/all-in-one@v1.42.0 && prepare_tools
}

run_collector() {
  go_tools_path
  python3 "$QUANTD_ROOT/tests/languages/collector.py" "$TEST_QUANTD" "$(command -v all-in-one)" "$CLIENTS_BUILD/collector" \
    2>"$QUANTD_LOGS/clients-collector.log" | cases collector
}
