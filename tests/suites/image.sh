# shellcheck shell=bash
# Builds the Dockerfile with buildah and runs it with podman, in a storage of its own under build/image. No daemon.
source "$QUANTD_ROOT/tests/image/containers.sh"

image=localhost/quantd:test
files=$QUANTD_BUILD/image/files
# What the README promises: nothing writable, no capability, no new privilege.
locked=(--read-only --cap-drop=all --security-opt=no-new-privileges)

run() {
  local container
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
  check "build" build_image "$image"
  [[ $(count fail image) -eq 0 ]] || return

  check "under 40 MB" smaller_than 40000000
  check "numeric user" equal "$(config '{{.Config.User}}')" "65532:65532"
  check "starts quantd" equal "$(config '{{json .Config.Entrypoint}}')" '["/quantd"]'
  check "health check by quantctl" equal "$(config '{{index .Config.Healthcheck.Test 1}} {{index .Config.Healthcheck.Test 2}}')" "/quantctl health"
  check "both ports declared" equal "$(config '{{range $port, $_ := .Config.ExposedPorts}}{{$port}} {{end}}')" "50051/tcp 9464/tcp "
  check "no shell, nothing setuid" nothing_to_exploit

  # As it is, with default ports, in a network of its own.
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
  podman_here rm --force --all >/dev/null 2>&1
}

start() { start_here "${locked[@]}" "$@" "$image"; }
config() { podman_here image inspect --format "$1" "$image"; }
equal() { echo "is '$1', should be '$2'" && [[ $1 == "$2" ]]; }

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
    python3 "$QUANTD_ROOT/deploy/check_tensors.py" "$files/embeddings.npy" "$files/embeddings.safetensors"
}

shows_metrics() { curl --silent --fail --noproxy '*' "http://$(address 'a["http"]')/metrics" | grep '^quantd_build_info'; }
