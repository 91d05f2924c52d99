#!/usr/bin/env bash
# Renders the bases of kustomize: the Helm charts with their defaults, without the labels that only helm keeps.
#   deploy/kubernetes/render.sh [FOLDER]       default: this one. Run it when a chart or the version has changed; a test compares.

set -euo pipefail
deploy=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
output=${1:-$deploy/kubernetes}
temporary=$(mktemp -d)
trap 'rm -rf "$temporary"' EXIT

# render NAME CHART OPTIONS...
render() {
  echo "# Rendered by deploy/kubernetes/render.sh from the chart ${2##*/}: do not edit."
  helm template "$1" "$2" --kube-version=1.30.0 "${@:3}" |
    sed -e '/^# Source: /d' -e '/^ *helm\.sh\/chart: /d' -e '/^ *$/d' -e '/^ *app\.kubernetes\.io\/managed-by: Helm$/d'
}

# Like helm package: links into deploy/monitoring become files, and a dependency is copied into charts/.
cp -rL "$deploy/helm/quantd" "$temporary/quantd"
cp -r "$deploy/helm/application" "$temporary/application"
mkdir "$temporary/application/charts"
cp -r "$temporary/quantd" "$temporary/application/charts/quantd"
render quantd "$temporary/quantd" --set=test.enabled=false >"$temporary/quantd.yaml"
render application "$temporary/application" >"$temporary/application.yaml"
mkdir -p "$output/base" "$output/overlays/sidecar"
mv "$temporary/quantd.yaml" "$output/base/"
mv "$temporary/application.yaml" "$output/overlays/sidecar/"
