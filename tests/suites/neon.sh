# shellcheck shell=bash
# The core's arithmetic for arm64, with its libraries unpacked in addition to ours. On an arm64 machine the unit suite runs NEON natively.
source "$SUITES/debs.sh"

prepare() {
  is_arm64 && return
  # Not installed with the cross compiler (the C and C++ libraries).
  unpack_debs arm64 '^(libabsl|libgmock|libgtest|googletest|libhwy|libtbb|libhwloc|libudev|libcap2)' \
    libabsl-dev libgmock-dev libgtest-dev libhwy-dev libtbb-dev
}

# What differs between instruction sets: the kernels, what they compute together, and floating point as the compiler translates
# it. Plans, walks and the pool are integers and pointers, the same everywhere.
tests=(types rules kernels quotient embed_quotient operations layouts calibrate)

is_arm64() { [[ $(uname -m) == aarch64 ]]; }

build() {
  is_arm64 && return
  local root libraries
  root=$(debs_root arm64)
  libraries=$root/usr/lib/aarch64-linux-gnu
  export PKG_CONFIG_LIBDIR=$libraries/pkgconfig:$root/usr/share/pkgconfig PKG_CONFIG_SYSROOT_DIR=$root
  export QEMU_SET_ENV=LD_LIBRARY_PATH=$libraries:$root/lib/aarch64-linux-gnu
  local targets=("${tests[@]/#/core_}")
  build_tree arm64 "${targets[@]/%/_test}" -- "-DCMAKE_PREFIX_PATH=$root/usr" "-DCMAKE_EXE_LINKER_FLAGS=-Wl,-rpath-link,$libraries"
}

run() {
  if is_arm64; then
    skip "neon" "this machine is arm64: the unit suite runs NEON"
    return
  fi
  build
  export QUANTD_TEST_SECONDS=${QUANTD_TEST_SECONDS:-2}
  ctest_tree arm64 --tests-regex "^core\.($(IFS='|' && echo "${tests[*]}"))\."
}
