# shellcheck shell=bash
# The core for arm64. On an arm64 machine the unit suite already runs NEON natively.
#
# Debian's arm64 libraries are unpacked into build/arm64-root by apt with lists of its own: no foreign architecture is
# added to the machine, and no right of root is needed.

root=$QUANTD_BUILD/arm64-root
apt_state=$QUANTD_BUILD/arm64-apt
libraries=(libabsl-dev libgmock-dev libgtest-dev libhwy-dev libtbb-dev)

arm64_apt() {
  apt-get -q -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o Dir::State="$apt_state" \
    -o Dir::State::status=/dev/null -o Dir::Cache="$apt_state" -o Acquire::Languages=none -o Debug::NoLocking=true \
    -o APT::Sandbox::User= -o Dir::Log="$apt_state" "$@"
}

prepare() {
  local packages package
  [[ $(uname -m) == aarch64 || -f $root/.complete ]] && return 0
  rm -rf "$root" "$apt_state"
  mkdir -p "$root" "$apt_state/lists/partial" "$apt_state/archives/partial"
  arm64_apt update || return
  # What these need, without what the cross compiler brings along (the C and C++ libraries).
  mapfile -t packages < <(arm64_apt install --simulate --no-install-recommends "${libraries[@]}" |
    awk '$1 == "Inst" && $2 ~ /^(libabsl|libgmock|libgtest|googletest|libhwy|libtbb|libhwloc|libudev|libcap2)/ { sub(/:arm64/, "", $2); print $2 }')
  [[ ${#packages[@]} -gt 0 ]] || return
  (cd "$apt_state/archives" && arm64_apt download "${packages[@]}") || return
  for package in "$apt_state"/archives/*.deb; do dpkg-deb --extract "$package" "$root" || return; done
  touch "$root/.complete"
}

run() {
  if [[ $(uname -m) == aarch64 ]]; then
    skip "neon" "this machine is arm64: the unit suite runs NEON"
    return
  fi
  export PKG_CONFIG_LIBDIR=$root/usr/lib/aarch64-linux-gnu/pkgconfig:$root/usr/share/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
  export QEMU_SET_ENV=LD_LIBRARY_PATH=$root/usr/lib/aarch64-linux-gnu:$root/lib/aarch64-linux-gnu
  build_tree arm64 all -- "-DCMAKE_PREFIX_PATH=$root/usr" "-DCMAKE_EXE_LINKER_FLAGS=-Wl,-rpath-link,$root/usr/lib/aarch64-linux-gnu"
  ctest_tree arm64
}
