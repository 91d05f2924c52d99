# shellcheck shell=bash
# The Debian packages: made by CPack; installed, started and purged in a bare Debian 12 (made by debootstrap, in a buildah container,
# without a running systemd).
source "$QUANTD_ROOT/tests/image/containers.sh"

made=$QUANTD_BUILD/packages
notes=$made/notes # visible to both container and suite

run() {
  local container mounted service
  if [[ $EUID -ne 0 ]]; then
    skip "packages" "installing packages in a root of their own needs root"
    return
  fi
  rm -rf "$made"
  mkdir -p "$notes"
  check "cpack makes two packages, and two of symbols" make_packages
  [[ $(count fail packages) -eq 0 ]] || return
  check "they say what they depend on" depend_on_libraries
  if ! can_build >"$QUANTD_LOGS/packages-probe.log" 2>&1; then
    skip "installation" "buildah can't make a root here: $(tail -n 1 "$QUANTD_LOGS/packages-probe.log")"
    return
  fi
  prepare_base || { fail "a bare Debian" "neither pulled nor made with debootstrap; see build/logs/image-base.log" && return; }
  container=$(buildah_here from --pull-never "$base")
  mounted=$(buildah_here mount "$container")

  check "apt installs them" inside apt_install
  check "the unit is enabled" test -L "$mounted/etc/systemd/system/multi-user.target.wants/quantd.service"
  check "the user is nobody's" inside "getent passwd quantd | grep -q ':/nonexistent:/usr/sbin/nologin\$'"
  if [[ -e /lib/systemd/system/sysinit.target ]] && systemd-analyze --version >/dev/null 2>&1; then
    check "systemd accepts the unit" accepted
  else
    skip "systemd accepts the unit" "no systemd-analyze on this machine, or no units to verify it beside"
  fi
  if systemd-analyze --version >/dev/null 2>&1; then
    check "systemd finds it locked up" confined
  else
    skip "systemd finds it locked up" "no systemd-analyze on this machine"
  fi
  check "the settings are the administrator's" inside "dpkg-query --show --showformat='\${Conffiles}' quantd | grep /etc/default/quantd"

  python3 "$QUANTD_ROOT/tests/packages/manager.py" "$notes/notify" "$notes/heard" &
  local manager=$!
  printf 'QUANTD_LISTEN=unix:/run/quantd/socket,127.0.0.1:0\nQUANTD_HTTP_LISTEN=127.0.0.1:0\nQUANTD_READY_FILE=/notes/ready.json\n' >>"$mounted/etc/default/quantd"
  chmod 1777 "$notes"
  buildah_here run --isolation=chroot --volume="$notes:/notes" --volume="$QUANTD_ROOT/tests/packages:/tests:ro" \
    --env=NOTIFY_SOCKET=/notes/notify --env=WATCHDOG_USEC=2000000 "$container" -- /tests/service.sh >"$notes/log" 2>&1 &
  service=$!
  check "started as the unit starts it, it is ready" hears READY=1
  check "and alive" hears WATCHDOG=1
  check "its command line finds it well" inside "QUANTD_LISTEN=unix:/run/quantd/socket quantctl health"
  check "quantizes for a client outside" quantizes
  check "SIGTERM ends it with 0" ends "$service"
  check "which it says first" hears STOPPING=1
  kill "$manager"

  check "with its symbols, gdb names what it does, and addr2line where it crashed" read_stacks

  check "a new version keeps the settings" inside "apt_install --reinstall && grep -q '^QUANTD_LISTEN=unix' /etc/default/quantd"
  check "removed, its settings stay" inside "apt-get -y remove quantd quantctl && ! dpkg-query --status quantd-dbgsym && test -e /etc/default/quantd && ! test -e /usr/bin/quantd"
  check "purged, nothing stays" inside "apt-get -y purge quantd quantctl && nothing_left"
  buildah_here umount "$container" >/dev/null
  buildah_here rm "$container" >/dev/null
}

make_packages() {
  cpack --config "$QUANTD_BUILD/release/CPackConfig.cmake" -B "$made" && rm -rf "$made/_CPack_Packages" &&
    [[ $(find "$made" -name 'quantd_*.deb' -o -name 'quantctl_*.deb' | wc -l) -eq 2 ]] &&
    [[ $(find "$made" -name 'quantd-dbgsym_*.ddeb' -o -name 'quantctl-dbgsym_*.ddeb' | wc -l) -eq 2 ]]
}

depend_on_libraries() {
  local package
  for package in "$made"/*.deb; do
    dpkg-deb --field "$package" Depends | tee /dev/stderr | grep -q 'libabsl.*libc6 (>= .*libprotobuf' || return
  done
  dpkg-deb --field "$made"/quantctl_*.deb Depends | grep -q libgrpc++ && ! dpkg-deb --field "$made"/quantd_*.deb Depends | grep -q libgrpc++
}

read_stacks() {
  buildah_here run --isolation=chroot --volume="$made:/packages:ro" --volume="$QUANTD_ROOT/tests/packages:/tests:ro" "$container" -- /tests/stacks.sh
}

# inside COMMAND: in the bare Debian, with two more arguments.
inside() {
  buildah_here run --isolation=chroot --volume="$made:/packages:ro" "$container" -- bash -c '
    set -e
    export DEBIAN_FRONTEND=noninteractive
    apt_install() { apt-get update && apt-get install -y --no-install-recommends "$@" /packages/quantd_*.deb /packages/quantctl_*.deb; }
    nothing_left() {
      local found
      found=$(find / -xdev \( -path /proc -o -path /run -o -path /packages -o -path /var/log -o -path /var/cache \) -prune -o -iname "*quant[dc]*" -print)
      echo "found: $found" && [[ -z $found ]]
    }
    '"$1"
}

# The program is not at the unit's path: on this machine nothing is installed.
accepted() {
  local unit=$notes/quantd.service said
  sed "s#^ExecStart=#ExecStart=$mounted#" "$mounted/usr/lib/systemd/system/quantd.service" >"$unit"
  said=$(systemd-analyze verify "$unit" 2>&1) || { echo "$said" && return 1; }
  echo "$said" && ! grep -q 'quantd.service' <<<"$said"
}

confined() {
  local said
  said=$(systemd-analyze security --offline=true --threshold=20 --no-pager "$mounted/usr/lib/systemd/system/quantd.service") && tail -n 1 <<<"$said"
}

hears() {
  for _ in $(seq 300); do
    grep -q "^$1" "$notes/heard" && return
    sleep 0.1
  done
  cat "$notes/heard" "$notes/log"
  return 1
}

quantizes() {
  local address
  address=$(python3 -c "import json; print(json.load(open('$notes/ready.json'))['grpc'][1])") &&
    python3 "$QUANTD_ROOT/deploy/make_tensors.py" "$notes" &&
    "$QUANTD_BUILD/release/client/quantctl" quantize "$notes/embeddings.npy" -o "$notes/embeddings.safetensors" --type=uint8 --force --address="$address" &&
    python3 "$QUANTD_ROOT/tests/check_tensors.py" "$notes/embeddings.npy" "$notes/embeddings.safetensors"
}

ends() {
  kill "$(python3 -c "import json; print(json.load(open('$notes/ready.json'))['pid'])")" && wait "$1"
}
