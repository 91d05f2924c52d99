#!/usr/bin/env bash
# From a fresh Debian to a quantized tensor: installs what is missing, builds release, starts quantd on loopback,
# quantizes two tensor files with quantctl, shows the error and the metrics, stops the server.
#
#   ./deploy/quickstart.sh            leaves nothing running; the files stay in build/quickstart
#   ./deploy/quickstart.sh --serve    the same on the default ports (or QUANTD_LISTEN, QUANTD_HTTP_LISTEN); the server
#                                     runs until Ctrl-C

set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/packages.sh"

case ${1:-} in
  "") serve=false listen=127.0.0.1:0 http_listen=127.0.0.1:0 ;;
  --serve) serve=true listen=${QUANTD_LISTEN:-127.0.0.1:50051} http_listen=${QUANTD_HTTP_LISTEN:-127.0.0.1:9464} ;;
  *) die "usage: $0 [--serve]" ;;
esac
quantd=$QUANTD_BUILD/release/server/quantd
quantctl=$QUANTD_BUILD/release/client/quantctl
files=$QUANTD_BUILD/quickstart
server=

# Ends the server that this script started, by its process id, and returns its exit code.
stop_server() {
  local status=0
  [[ -n $server ]] || return 0
  kill -TERM "$server" 2>/dev/null || true
  wait "$server" || status=$?
  server=
  return "$status"
}

# Starts quantd and waits until its ready file says which ports it got. In a session of its own: Ctrl-C goes to every process of the
# terminal's group, so quantd would get two signals, with this script's SIGTERM, and not drain.
start_server() {
  local deadline=$((SECONDS + 30))
  rm -f "$files/ready.json"
  setsid "$quantd" --listen="$listen" --http_listen="$http_listen" --ready_file="$files/ready.json" \
    >"$files/quantd.log" 2>&1 &
  server=$!
  trap 'stop_server || true' EXIT
  until [[ -s $files/ready.json ]]; do
    if ! kill -0 "$server" 2>/dev/null; then
      sed 's/^/    | /' "$files/quantd.log" >&2
      die "quantd ended at its start"
    fi
    [[ $SECONDS -lt $deadline ]] || die "quantd is not ready after 30 s; see $files/quantd.log"
    sleep 0.05
  done
  grpc_address=$(ready_value 'addresses["grpc"][0]')
  http_address=$(ready_value 'addresses["http"]')
}

ready_value() {
  python3 -c "import json, sys; addresses = json.load(open(sys.argv[1])); print($1)" "$files/ready.json"
}

run() {
  printf '\n    $ %s\n' "${*/#$QUANTD_ROOT\//}"
  "$@" | sed 's/^/    /'
}

step "quantd quickstart: about $((270 / $(nproc) / 60 + 1)) min from nothing on $(nproc) CPUs, seconds the next time"
packages_install build
step "Building release"
build_tree release quantd quantctl -- -DQUANTD_BUILD_TESTS=OFF

step "Starting quantd on loopback"
mkdir -p "$files"
start_server
note "gRPC on $grpc_address, HTTP on $http_address, process $server"

step "Quantizing two tensor files"
if [[ ! -f $files/layer.safetensors ]]; then
  note "making a matrix of embeddings (.npy, 12 MiB) and a model's layer (.safetensors, 9 MiB)"
  python3 "$QUANTD_ROOT/deploy/make_tensors.py" "$files"
fi
run "$quantctl" quantize "$files/embeddings.npy" -o "$files/embeddings.uint8.safetensors" --type=uint8 --force --address="$grpc_address"
run "$quantctl" quantize "$files/layer.safetensors" -o "$files/layer.int8.safetensors" --type=int8 --force --address="$grpc_address"

step "Some of its metrics (http://$http_address/metrics)"
curl --silent --show-error --fail --noproxy '*' "http://$http_address/metrics" |
  grep -E '^(quantd_elements_total|quantd_tensor_bytes_total|quantd_build_info|grpc_server_handled_total.*grpc_code="OK")' |
  grep -v ' 0$' | sed 's/^/    /'

if $serve; then
  step "Serving on $grpc_address until Ctrl-C"
  note "http://$http_address/ shows in a browser what it does"
  note "${quantctl#"$QUANTD_ROOT"/} quantize FILE.npy -o OUT.safetensors --type=int8"
  tail --lines=+1 --follow --sleep-interval=0.1 --pid="$server" "$files/quantd.log" &
  # A second signal makes the server end at once. wait returns after each.
  trap 'kill -TERM "$server" 2>/dev/null || true' INT TERM HUP
  while kill -0 "$server" 2>/dev/null; do
    wait "$server" || true
  done
  status=0 && wait "$server" || status=$?
  trap - EXIT
  wait || true # for tail, which shows the last lines
  exit "$status"
fi

step "Stopping quantd"
stop_server || die "quantd ended with an error; see $files/quantd.log"
note "stopped cleanly. The files are in build/quickstart. What next?"
note "  ./deploy/quickstart.sh --serve                                  the server, in the foreground"
note "  export PATH=\"\$PWD/build/release/client:\$PATH\"                quantctl, for files"
note "  python3 -m venv venv && venv/bin/pip install ./client/python    the Python client"
