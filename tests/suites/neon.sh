# shellcheck shell=bash
# The core for arm64, its libraries unpacked beside ours. On an arm64 machine the unit suite runs NEON natively.
source "$SUITES/debs.sh"

prepare() {
  is_arm64 && return
  # What the cross compiler does not bring along (the C and C++ libraries).
  unpack_debs arm64 '^(libabsl|libgmock|libgtest|googletest|libhwy|libtbb|libhwloc|libudev|libcap2)' \
    libabsl-dev libgmock-dev libgtest-dev libhwy-dev libtbb-dev
}

is_arm64() { [[ $(uname -m) == aarch64 ]]; }

build() {
  is_arm64 && return
  local root libraries
  root=$(debs_root arm64)
  libraries=$root/usr/lib/aarch64-linux-gnu
  export PKG_CONFIG_LIBDIR=$libraries/pkgconfig:$root/usr/share/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
  export QEMU_SET_ENV=LD_LIBRARY_PATH=$libraries:$root/lib/aarch64-linux-gnu
  build_tree arm64 tests/core/all -- "-DCMAKE_PREFIX_PATH=$root/usr" "-DCMAKE_EXE_LINKER_FLAGS=-Wl,-rpath-link,$libraries"
}

run() {
  if is_arm64; then
    skip "neon" "this machine is arm64: the unit suite runs NEON"
    return
  fi
  build
  export QUANTD_TEST_SECONDS=${QUANTD_TEST_SECONDS:-2}
  # What a benchmark says under an emulator says nothing.
  ctest_tree arm64 --exclude-regex '^bench\.'
}
