#!/usr/bin/env bash
# The only list of Debian packages that quantd needs, and the only function that installs them.
#
#   deploy/packages.sh install build test     installs the missing packages of these groups
#   deploy/packages.sh list build             prints the names, one per line
#   deploy/packages.sh cross arm64 build      what a build for that architecture needs here: its libraries in addition to ours
#   source deploy/packages.sh                 defines packages_install and packages_list
#
# Works on Debian 12 and 13, as root without sudo or as a user with it. If nothing is missing it takes a fraction of a
# second and uses neither apt nor the network.

source "$(dirname "${BASH_SOURCE[0]}")/lib.sh"

# A line: GROUP PACKAGE [COMMAND]. With a COMMAND, a machine that already has it (from another source than
# Debian) does not need the package. GROUP@RELEASE: only that release of Debian has the package.
packages_table() {
  local release
  # shellcheck source=/dev/null
  release=$(source /etc/os-release 2>/dev/null && echo "${VERSION_ID:-}")
  sed -e "s/@$release / /" -e /@/d <<'TABLE'
build binutils readelf
build ca-certificates
build ccache
build cmake cmake
build curl curl
build g++
build libabsl-dev
build libcli11-dev
build libgrpc++-dev
build libhwy-dev
build libnghttp2-dev
build libprotobuf-dev
build libprotoc-dev
build libre2-dev
build libssl-dev
build libtbb-dev
build make make
build ninja-build ninja
build nlohmann-json3-dev
build pkg-config pkg-config
build prometheus-cpp-dev
build protobuf-compiler
build protobuf-compiler-grpc
build python3 python3
build zlib1g-dev
test clang-format-19
test git git
test@12 grpc-proto
test jq jq
test libgmock-dev
test libgtest-dev
test openssl openssl
test procps ps
test shellcheck shellcheck
test python3-dev python3-config
test python3-venv
browser chromium chromium
browser chromium-driver chromedriver
clang clang-19
clang libclang-rt-19-dev
lint clang-tidy-19
neon g++-aarch64-linux-gnu
neon qemu-user-static qemu-aarch64-static
proto nodejs node
proto npm npm
package dpkg-dev dpkg-shlibdeps
package file file
debugger busybox
debugger gdb-minimal
clients default-jdk-headless javac
clients maven mvn
clients nodejs node
clients npm npm
fresh debootstrap
image buildah
image debootstrap
image podman
image runc
TABLE
}

packages_list() {
  packages_table | awk -v groups=" $* " 'index(groups, " " $1 " ") { print $2 }' | sort -u
}

# The packages of the groups in the arguments that this machine lacks.
packages_missing() {
  local package command installed
  installed=" $(dpkg-query --show --showformat='${db:Status-Status} ${Package}\n' 2>/dev/null |
    awk '$1 == "installed" { printf "%s ", $2 }')"
  packages_table | awk -v groups=" $* " 'index(groups, " " $1 " ") { print $2, $3 }' | sort -u |
    while read -r package command; do
      [[ $installed == *" $package "* ]] && continue
      [[ -n $command ]] && command -v "$command" >/dev/null && continue
      echo "$package"
    done
}

as_root() {
  if [[ $EUID -eq 0 ]]; then
    "$@"
  elif command -v sudo >/dev/null; then
    sudo "$@"
  else
    die "packages are missing and this user is not root and has no sudo. As root, run: apt-get install $(packages_missing "${groups[@]}" | tr '\n' ' ')"
  fi
}

# A fresh machine runs apt by itself at boot. DPkg::Lock::Timeout waits only for dpkg's lock, not for those of the lists and of the
# archives: so apt is called again as long as another process has one, for at most PACKAGES_WAIT seconds.
packages_apt() {
  local said deadline=$((SECONDS + ${PACKAGES_WAIT:-600})) told=false status=0
  said=$(mktemp)
  while :; do
    as_root env DEBIAN_FRONTEND=noninteractive LC_ALL=C apt-get -y -o DPkg::Lock::Timeout=300 -o Dpkg::Use-Pty=0 \
      -o Acquire::Retries=3 "$@" 2>&1 | tee "$said"
    status=${PIPESTATUS[0]}
    if [[ $status -eq 0 || $SECONDS -ge $deadline ]] || ! grep -q 'Could not get lock\|Unable to lock' "$said"; then break; fi
    $told || echo "    waiting for another apt on this machine to end" >&3
    told=true
    sleep 2
  done
  rm -f "$said"
  return "$status"
}

packages_install() {
  local groups=("$@") missing count
  command -v apt-get >/dev/null || die "this machine has no apt-get; install by hand: $(packages_list "$@" | tr '\n' ' ')"
  mapfile -t missing < <(packages_missing "$@")
  [[ ${#missing[@]} -eq 0 ]] && return 0
  step "Installing packages: ${missing[*]}"
  exec 3>&1  # what a user should see of a logged command
  logged apt-update "" packages_apt update
  count=$(apt-get install --simulate --no-install-recommends "${missing[@]}" | grep -c '^Inst') ||
    die "apt does not know all of: ${missing[*]}"
  note "$count packages with what they depend on"
  logged apt-install "$((2 * count)) ^(Unpacking|Setting up) " packages_apt install --no-install-recommends "${missing[@]}"
}

# packages_cross ARCHITECTURE GROUPS...: of these groups, the packages to link with (-dev) for that architecture and all others, the tools,
# for this machine's own; and the compiler. For this machine's own architecture it is packages_install.
packages_cross() {
  local architecture=$1 package
  local wanted=()
  shift
  if [[ $architecture == "$(dpkg --print-architecture)" ]]; then
    packages_install "$@"
    return
  fi
  [[ $architecture =~ ^(amd64|arm64)$ ]] || die "cannot build for '$architecture': amd64 or arm64"
  groups=("$@")
  exec 3>&1
  as_root dpkg --add-architecture "$architecture"
  logged apt-update "" packages_apt update
  wanted=("g++-$(target_triplet "$architecture" | tr _ -)")
  while read -r package; do
    case $package in
      g++) continue ;;
      *-dev | busybox | gdb-minimal)
        apt-cache show --no-all-versions "$package" | grep -qx 'Architecture: all' || package+=:$architecture
        ;;
    esac
    wanted+=("$package")
  done < <(packages_list "$@")
  step "Installing packages: ${wanted[*]}"
  logged apt-install "600 ^(Unpacking|Setting up) " packages_apt install --no-install-recommends "${wanted[@]}"
}

if [[ ${BASH_SOURCE[0]} == "$0" ]]; then
  set -euo pipefail
  case ${1:-} in
    install) shift && packages_install "$@" ;;
    list) shift && packages_list "$@" ;;
    cross) shift && packages_cross "$@" ;;
    *) die "usage: $0 install|list GROUP... | cross ARCHITECTURE GROUP... (groups: $(packages_table | cut -d' ' -f1 | uniq | tr '\n' ' '))" ;;
  esac
fi
