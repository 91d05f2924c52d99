# shellcheck shell=bash
source "$SUITES/venv.sh"
source "$SUITES/debs.sh"
source "$SUITES/gotool.sh"

prepare() {
  unpack_program kubernetes-client '^(kubectl|kubernetes-client)$' &&
    prepare_gate_venv || return
  # If it is not available, the chart's tests report that they were skipped.
  build_go_tool helm helm.sh/helm/v3/cmd/helm@v3.13.3 || note "no helm could be built"
  custom_schemas || note "no schemas of custom objects could be had"
}

# Objects that the chart renders for others than Kubernetes: their own definitions.
custom_schemas() {
  local operator=example/prometheus-operator-crd/monitoring.coreos.com
  go_module_files crds github.com/prometheus-operator/prometheus-operator@v0.79.2 \
    "$operator"_{podmonitors,servicemonitors,prometheusrules}.yaml &&
    go_module_files crds github.com/cert-manager/cert-manager@v1.16.2 deploy/crds/crd-certificates.yaml &&
    go_module_files crds sigs.k8s.io/gateway-api@v1.2.0 config/crd/standard/gateway.networking.k8s.io_grpcroutes.yaml &&
    go_module_files crds github.com/kedacore/keda/v2@v2.16.1 config/crd/bases/keda.sh_scaledobjects.yaml
}

run() {
  debs_path
  go_tools_path
  VENV=$GATE_VENV
  pytest_suite deploy tests/deploy
}
