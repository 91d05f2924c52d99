# shellcheck shell=bash
# Both README commands on machines with nothing installed: Debian 12 and 13 as debootstrap makes them (minbase), with a clone of HEAD, and
# of this machine only the package sources and the network configuration. Needs root and 30 GB of disk. The closing lines have wall and
# CPU seconds of each step, with its packages.
#
#   QUANTD_FRESH="bookworm"         only this release
#   QUANTD_FRESH_STEPS="quickstart" only these steps, of: quickstart plain install consumers tests
#   QUANTD_FRESH_TESTS="unit e2e"   what ./tests/run.sh gets in step tests: suites or a tier; empty: the default tier
#   QUANTD_FRESH_CCACHE=FOLDER      a copy of this machine's compiler cache, to be quicker; then the times are not those of a new user

fresh=$QUANTD_BUILD/fresh

run() {
  local release
  if [[ $EUID -ne 0 ]]; then
    skip "bare machines" "making a root needs root"
    return
  fi
  for release in ${QUANTD_FRESH:-bookworm trixie}; do
    check "$release: debootstrap" make_root "$release" || continue
    wanted quickstart && check "$release: quickstart.sh as root" timed "$release" quickstart root ./deploy/quickstart.sh
    wanted plain && check "$release: cmake, build, install as README says" timed "$release" plain root "$(plain_way)"
    wanted install && check "$release: what quickstart built installs" timed "$release" install root 'cmake --install build/release --prefix /tmp/prefix'
    wanted consumers && check "$release: consumers of the installation" timed "$release" consumers root "$(consumers)"
    wanted tests && check "$release: tests/run.sh as a user with sudo" timed "$release" tests tester "./tests/run.sh ${QUANTD_FRESH_TESTS:-}"
    report "$release"
    rm -rf "${fresh:?}/$release"
  done
}

wanted() { [[ " ${QUANTD_FRESH_STEPS:-quickstart plain install consumers tests} " == *" $1 "* ]]; }

# The host's sources, for another release: an ordinary user has some mirror, and which one does not matter here.
make_root() {
  local release=$1 root=$fresh/$1 site
  local main='' security=''
  rm -rf "$root" "$root.tsv"
  mkdir -p "$root"
  # shellcheck disable=SC2016  # apt-get expands it
  while read -r site; do
    case $site in *security*) security=$site ;; *) main=${main:-$site} ;; esac
  done < <(apt-get indextargets --format '$(SITE)' 'Created-By: Packages' | sort -u)
  debootstrap --variant=minbase --include=ca-certificates "$release" "$root" "$main" || return
  printf 'deb %s %s main\n' "$main" "$release" "$main" "$release-updates" ${security:+"$security" "$release-security"} >"$root/etc/apt/sources.list"
  cp /etc/resolv.conf "$root/etc/resolv.conf"
  cp -r /usr/local/share/ca-certificates/. "$root/usr/local/share/ca-certificates"
  # The README requires git and sudo.
  inside "$release" root 'update-ca-certificates && apt-get update && apt-get install -y --no-install-recommends git sudo' || return
  inside "$release" root 'useradd --create-home --shell /bin/bash tester && echo "tester ALL=(ALL) NOPASSWD: ALL" >/etc/sudoers.d/tester' || return
  if [[ -n ${QUANTD_FRESH_CCACHE:-} ]]; then
    cp -r "$QUANTD_FRESH_CCACHE" "$root/ccache" && chmod -R a+rwX "$root/ccache" || return
  fi
  git clone --quiet --no-hardlinks "$QUANTD_ROOT" "$root/home/tester/quantd" || return
  inside "$release" root 'chown -R tester: /home/tester/quantd && git config --system --add safe.directory "*" && dpkg-query --show >/var/tmp/before'
}

# inside RELEASE USER COMMAND: runs it in the clone, with processes, mounts and shared memory of its own.
inside() {
  local root=$fresh/$1 name environment=()
  for name in http_proxy https_proxy no_proxy SSL_CERT_FILE PIP_CERT REQUESTS_CA_BUNDLE CURL_CA_BUNDLE NODE_EXTRA_CA_CERTS; do
    [[ -z ${!name:-} ]] || environment+=("$name=${!name}")
  done
  [[ -z ${QUANTD_FRESH_CCACHE:-} ]] || environment+=(CCACHE_DIR=/ccache CCACHE_BASEDIR=/home/tester CCACHE_NOHASHDIR=1 CCACHE_UMASK=000)
  # shellcheck disable=SC2016  # the inner shells expand these
  unshare --mount --pid --fork --kill-child bash -c '
    root=$1 user=$2 command=$3
    shift 3
    mount -t proc proc "$root/proc" && mount --rbind /sys "$root/sys" && mount --rbind /dev "$root/dev" || exit
    mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm" && mount -t tmpfs -o mode=1777 tmpfs "$root/run" || exit
    home=/root && [[ $user == root ]] || home=/home/$user
    chroot "$root" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME="$home" LANG=C.UTF-8 "$@" \
      setpriv --reuid="$user" --regid="$user" --init-groups bash -c "cd /home/tester/quantd 2>/dev/null || cd /; $command" </dev/null
  ' inside "$root" "$2" "$3" "${environment[@]}"
}

# timed RELEASE STEP USER COMMAND: records how it ended, its last line and how long it took, by the clock and in CPU seconds (user + sys).
# The user gets the files that a root's step leaves.
timed() {
  local release=$1 step=$2 user=$3 status=0 log TIMEFORMAT='%R %U %S'
  log=$fresh/$release-$step.log
  { time inside "$release" "$user" "$4" >"$log" 2>&1; } 2>"$log.time" || status=$?
  printf '%s\t%s\t%s\t%s\n' "$step" "$status" "$(awk '{ printf "%d s, %d s of CPU", $1, $2 + $3 }' "$log.time")" "$(tail -n 1 "$log")" \
    >>"$fresh/$release.tsv"
  # Removes the root, but not the records of failures.
  [[ $status -eq 0 ]] || cp -r "$fresh/$release/home/tester/quantd/build/logs" "$fresh/$release-$step-logs"
  inside "$release" root 'chown -R tester: /home/tester/quantd'
  tail -n 40 "$log"
  return "$status"
}

# As a user who has read nothing would: with make where no generator is named.
plain_way() {
  # shellcheck disable=SC2016  # for the shell inside
  echo 'cmake -S . -B /tmp/plain -DCMAKE_INSTALL_PREFIX=/tmp/plain-prefix && cmake --build /tmp/plain --parallel "$(nproc)" && cmake --install /tmp/plain'
}

# The C++ core and the C++ client with find_package, each against the installed files.
consumers() {
  cat <<'CONSUMERS'
set -e
export CMAKE_PREFIX_PATH=/tmp/plain-prefix
for part in core client; do
  cmake -S tests/$part/consumer -B /tmp/consumer-$part && cmake --build /tmp/consumer-$part
done
/tmp/consumer-core/consumer
CONSUMERS
}

report() {
  inside "$1" root 'dpkg-query --show >/var/tmp/after; diff /var/tmp/before /var/tmp/after | grep -c "^>"' >"$fresh/$1-packages.count" || true
  note "$1: $(<"$fresh/$1-packages.count") packages added"
  while IFS=$'\t' read -r step status seconds line; do note "$1: $step ended with $status after $seconds: $line"; done <"$fresh/$1.tsv"
}
