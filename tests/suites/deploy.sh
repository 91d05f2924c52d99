# shellcheck shell=bash
source "$SUITES/venv.sh"
source "$SUITES/debs.sh"
source "$SUITES/gotool.sh"

prepare() {
  unpack_program kubernetes-client '^(kubectl|kubernetes-client)$' &&
    prepare_venv || return
  # The chart's tests say that they were skipped where it can't be had.
  build_go_tool helm helm.sh/helm/v3/cmd/helm@v3.13.3 || note "no helm could be built"
}

run() {
  debs_path
  go_tools_path
  pytest_suite deploy tests/deploy
}
