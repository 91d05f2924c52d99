# shellcheck shell=bash
# Builds the Dockerfile with buildah and runs it with podman, in a storage of its own under build/image. No daemon.
source "$QUANTD_ROOT/tests/image/containers.sh"
source "$SUITES/venv.sh"

image=localhost/quantd:test
files=$QUANTD_BUILD/image/files
built_as=(--build-arg=REVISION=0123abc --build-arg=CREATED=2026-01-02T03:04:05Z --build-arg=SOURCE=file:///source --build-arg=SOURCE_DATE_EPOCH=1767323045)
# The promises of the README: nothing writable, no capability, no new privileges.
locked=(--read-only --cap-drop=all --security-opt=no-new-privileges)

prepare() { prepare_venv; }

run() {
  local container listen
  if [[ $EUID -ne 0 ]]; then
    skip "image" "building a base image and mounting it needs root"
    return
  fi
  rm -rf "$files"
  mkdir -p "$files"
  if ! can_build >"$QUANTD_LOGS/image-probe.log" 2>&1; then
    skip "image" "buildah can't make images here: $(tail -n 1 "$QUANTD_LOGS/image-probe.log")"
    return
  fi
  prepare_base || { fail "base image" "neither pulled nor made with debootstrap; see build/logs/image-base.log" && return; }
  note "building the image (the whole output: build/logs/image-build.log)"
  check "build" build_image "$image" "$(dpkg --print-architecture)" "${built_as[@]}"
  [[ $(count fail image) -eq 0 ]] || return

  check "under 40 MB" smaller_than 40000000
  check "labels say what it is, of which commit" labelled "$image"
  check "a bill of materials of what is in it" billed "$image" amd64
  check "numeric user" equal "$(config '{{.Config.User}}')" "65532:65532"
  check "starts quantd" equal "$(config '{{json .Config.Entrypoint}}')" '["/quantd"]'
  check "health check by quantctl" equal "$(config '{{index .Config.Healthcheck.Test 1}} {{index .Config.Healthcheck.Test 2}}')" "/quantctl health"
  check "both ports declared" equal "$(config '{{range $port, $_ := .Config.ExposedPorts}}{{$port}} {{end}}')" "50051/tcp 9464/tcp "
  check "no shell, nothing setuid" nothing_to_exploit

  # As shipped, with default ports, in a network of its own.
  container=$(start --network=none) && check "healthy with its own defaults, locked down" healthy "$container"
  check "SIGTERM ends it with 0" stops_cleanly "$container"

  # Any user id; the host's network, so that quantctl of this machine can call it.
  mkdir -p "$files/run" && chmod 1777 "$files/run"
  container=$(start --network=host --user=12345:54321 --volume="$files/run:/run/quantd" \
    --env=QUANTD_LISTEN=127.0.0.1:0 --env=QUANTD_HTTP_LISTEN=127.0.0.1:0 --env=QUANTD_READY_FILE=/run/quantd/ready.json)
  check "any user id" ready_as 12345
  check "quantizes for a client outside" quantizes
  check "shows metrics" shows_metrics
  check "SIGTERM ends it with 0 after work" stops_cleanly "$container"

  # The health check probes the address on which the server listens, whatever the environment.
  for listen in '[::]:7001' 127.0.0.1:7002 unix:/run/quantd/socket 127.0.0.1:7003,unix:/run/quantd/socket; do
    container=$(start --network=none --volume="$files/run:/run/quantd" --env="QUANTD_LISTEN=$listen") && check "healthy at $listen" healthy "$container"
    podman_here rm --force "$container" >/dev/null 2>&1 # its socket is in the next one's folder
  done
  container=$(start --network=none --env=QUANTD_LISTEN=127.0.0.1:0) && check "at a port that nobody knows it says so" unknown_port "$container"
  podman_here rm --force --all >/dev/null 2>&1

  stacks
  arm64
  release
}

# Stacks of a server in a container while it runs, with the gdb image, started like kubectl debug. Of a crash: tests/deploy/test_symbols.py.
stacks() {
  local container
  check "build the image with gdb, and the symbols" build_debugger "$image-debug" "$(dpkg --print-architecture)"
  [[ $(count fail image) -eq 0 ]] || return
  container=$(start --network=none) && check "healthy, to be debugged" healthy "$container"
  check "gdb names what it does, with the rights of a restricted pod" names_functions "$container" "${locked[@]}" --user=65532:65532
  check "gdb names what it does, as root" names_functions "$container" --user=0 --cap-add=SYS_PTRACE
  check "it serves on" healthy "$container"
  podman_here kill --signal=SEGV "$container" >/dev/null
  check "a crash of a container's first process has the signal's exit status" equal "$(podman_here wait "$container")" 139
}

build_debugger() {
  build_image "$1" "$2" --target=debug "${built_as[@]}" &&
    build_image "$1-symbols" "$2" --target=symbols "${built_as[@]}" --output="type=local,dest=$files/symbols-$2"
}

names_functions() {
  local said
  said=$(podman_here run --rm --ulimit=nofile=4096:4096 --ulimit=nproc=4096:4096 --network=none --pid="container:$1" "${@:2}" "$image-debug" 2>&1)
  echo "$said"
  grep -q 'quantd::process::WaitForSignal.*signals.cc:' <<<"$said" && grep -q 'quantd::loop::.*loop.cc:' <<<"$said"
}

# The other architecture: compiled here without emulation, and emulated only to start it.
arm64() {
  local emulator
  if [[ $(uname -m) != x86_64 ]]; then
    skip "arm64" "this machine is $(uname -m): its own image is checked above"
    return
  fi
  note "building the image for arm64 (the whole output: build/logs/image-build_for_arm64.log)"
  check "build for arm64" build_image "$image-arm64" arm64 "${built_as[@]}"
  [[ $(count fail image) -eq 0 ]] || return
  emulator=$(command -v qemu-aarch64-static)
  check "arm64: is arm64" equal "$(podman_here image inspect --format '{{.Os}}/{{.Architecture}}' "$image-arm64")" linux/arm64
  check "arm64: labels" labelled "$image-arm64"
  check "arm64: a bill of materials" billed "$image-arm64" arm64
  check "arm64: its own files only" only_for_arm64 "$image-arm64"
  check "arm64: build the image with gdb, and the symbols" build_debugger "$image-arm64-debug" arm64
  check "arm64: a debugger of its own" only_for_arm64 "$image-arm64-debug"
  check "arm64: starts, is healthy, quantizes on NEON, stops" emulated
  podman_here image unmount "$image-arm64" >/dev/null
}

only_for_arm64() {
  local root wrong
  root=$(podman_here image mount "$1")
  wrong=$(find "$root" -type f -exec sh -c 'head -c 4 "$1" | grep -q ELF && ! readelf -h "$1" | grep -q AArch64' _ {} \; -print)
  echo "of another architecture: $wrong" && [[ -z $wrong ]]
}

emulated() {
  local root server address arm=$files/arm64
  root=$(podman_here image mount "$image-arm64")
  mkdir -p "$arm"
  QUANTD_LISTEN=127.0.0.1:0 QUANTD_HTTP_LISTEN=127.0.0.1:0 QUANTD_READY_FILE=$arm/ready.json "$emulator" -L "$root" "$root/quantd" &
  server=$!
  for _ in $(seq 600); do [[ -s $arm/ready.json ]] && break || sleep 0.2; done
  address=$(python3 -c "import json; print(json.load(open('$arm/ready.json'))['grpc'][0])") &&
    QUANTD_LISTEN=$address "$emulator" -L "$root" "$root/quantctl" health --timeout=60 &&
    "$QUANTD_BUILD/release/client/quantctl" info --json --address="$address" | tee "$arm/info.json" &&
    grep -q '"target": "neon"' "$arm/info.json" &&
    python3 "$QUANTD_ROOT/deploy/make_tensors.py" "$arm" &&
    "$QUANTD_BUILD/release/client/quantctl" quantize "$arm/embeddings.npy" -o "$arm/there.safetensors" --type=uint8 --force --address="$address" &&
    python3 "$QUANTD_ROOT/tests/check_tensors.py" "$arm/embeddings.npy" "$arm/there.safetensors" &&
    "$emulator" -L "$root" "$root/quantctl" quantize "$arm/embeddings.npy" -o "$arm/here.safetensors" --type=uint8 --force &&
    cmp "$arm/there.safetensors" "$arm/here.safetensors"
  local status=$?
  kill "$server" && wait "$server" && return "$status"
}

# A dry run of the release: it makes everything, from layers that exist already.
release() {
  local made=$QUANTD_BUILD/image/release
  local builder="buildah ${storage[*]}"
  rm -rf "$made"
  check "release.sh --dry-run makes all" "$QUANTD_ROOT/deploy/release.sh" "$(project_version)" --dry-run --only=image,debs,sums,push,sign \
    --platforms="$(dpkg --print-architecture)" --registry=registry.test/quantd --output="$made" --builder="$builder" --options="$(cache_volume) --isolation=chroot --layers --pull-never"
  check "it made packages, symbols, bill and sums" made_all "$made"
}

made_all() {
  (cd "$1" && sha256sum --check SHA256SUMS) && compgen -G "$1/debs/quantd_*.deb" && compgen -G "$1/debs/quantctl_*.deb" &&
    compgen -G "$1/debs/quantd-dbgsym_*.ddeb" && compgen -G "$1/sbom/quantd-*.spdx.json" &&
    tar --list --file="$1/symbols/quantd-$(project_version)-symbols-$(dpkg --print-architecture).tar.xz" | grep '\.build-id/../.*\.debug$'
}

start() { start_here "${locked[@]}" "$@" "$image"; }
config() { podman_here image inspect --format "$1" "$image"; }
equal() { echo "is '$1', should be '$2'" && [[ $1 == "$2" ]]; }

label() { podman_here image inspect --format "{{index .Config.Labels \"org.opencontainers.image.$2\"}}" "$1"; }
project_version() { sed -n 's/^project(quantd VERSION \([0-9.]*\).*/\1/p' "$QUANTD_ROOT/CMakeLists.txt"; }

labelled() {
  equal "$(label "$1" title)" quantd && equal "$(label "$1" version)" "$(project_version)" && equal "$(label "$1" revision)" 0123abc &&
    equal "$(label "$1" created)" 2026-01-02T03:04:05Z && equal "$(label "$1" source)" file:///source &&
    equal "$(label "$1" licenses)" Apache-2.0 && [[ -n $(label "$1" description) ]]
}

# billed IMAGE ARCHITECTURE: valid SPDX, of this version and date, and every file of the image is in it.
billed() {
  local root status
  root=$(podman_here image mount "$1")
  "$VENV/bin/python" "$QUANTD_ROOT/tests/image/bill.py" "$root" "$2" "$(project_version)" 2026-01-02T03:04:05Z
  status=$?
  podman_here image unmount "$1" >/dev/null
  return "$status"
}

# The server runs, and its clients are told what to do.
unknown_port() {
  local said
  said=$(podman_here exec "$1" /quantctl health 2>&1) && return 1
  echo "$said" && [[ $said == *"a port that the server picks"* ]]
}

smaller_than() {
  local size
  size=$(config '{{.Size}}')
  echo "$size bytes" && [[ $size -lt $1 ]]
}

nothing_to_exploit() {
  local mounted found
  mounted=$(podman_here image mount "$image")
  found=$(find "$mounted" -perm /6000 -o -name sh -o -name bash -o -name busybox)
  podman_here image unmount "$image" >/dev/null
  echo "found: $found" && [[ -z $found ]]
}

healthy() {
  for _ in $(seq 50); do
    podman_here healthcheck run "$1" && return
    sleep 0.2
  done
  podman_here logs "$1"
  return 1
}

stops_cleanly() {
  podman_here stop --time 30 "$1" && equal "$(podman_here inspect --format '{{.State.ExitCode}}' "$1")" 0
}

address() { python3 -c "import json; a = json.load(open('$files/run/ready.json')); print($1)"; }

ready_as() {
  for _ in $(seq 50); do [[ -s $files/run/ready.json ]] && break || sleep 0.2; done
  equal "$(stat --format %u "$files/run/ready.json")" "$1"
}

quantizes() {
  python3 "$QUANTD_ROOT/deploy/make_tensors.py" "$files" &&
    "$QUANTD_BUILD/release/client/quantctl" quantize "$files/embeddings.npy" -o "$files/embeddings.safetensors" --type=uint8 --force \
      --address="$(address 'a["grpc"][0]')" &&
    python3 "$QUANTD_ROOT/tests/check_tensors.py" "$files/embeddings.npy" "$files/embeddings.safetensors"
}

shows_metrics() { curl --silent --fail --noproxy '*' "http://$(address 'a["http"]')/metrics" | grep '^quantd_build_info'; }
