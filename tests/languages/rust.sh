# shellcheck shell=bash
# client/rust with the machine's cargo, or else with Debian's, unpacked: cargo-web and rustc-web on Debian 12, whose cargo is too old for
# today's registry; cargo and rustc on 13.
RUST_CLIENT=$QUANTD_ROOT/client/rust
RUST_BUILD=$CLIENTS_BUILD/rust

rust_environment() {
  local root
  if ! command -v cargo >/dev/null; then
    root=$(debs_root "$(dpkg --print-architecture)")
    export PATH=$root/usr/bin:$PATH
    # A program outside of its usual place finds its libraries this way.
    LD_LIBRARY_PATH=$(find "$root/usr/lib" -name 'lib*.so*' -printf '%h\n' | sort -u | paste -sd :)
    export LD_LIBRARY_PATH CARGO_HOME=$RUST_BUILD/home
  fi
  export CARGO_TARGET_DIR=$RUST_BUILD/target
  # A file of each crate that failed to download is worth another attempt.
  export CARGO_NET_RETRY=5
}

# The packages of either toolchain that the archive has.
rust_unpack() {
  local names='^(cargo|rustc|cargo-web|rustc-web|libstd-rust.*|libllvm.*|libgit2.*|libssh2.*|libhttp-parser.*|libmbed.*|libz3.*)$'
  unpack_debs "$(dpkg --print-architecture)" "$names" cargo-web rustc-web || unpack_debs "$(dpkg --print-architecture)" "$names" cargo rustc
}

prepare_rust() {
  command -v cargo >/dev/null || rust_unpack || return
  rust_environment
  cargo --version
  cd "$RUST_CLIENT" && cargo test --locked --no-run
}

run_rust() {
  local log=$QUANTD_LOGS/clients-rust.log
  rust_environment
  # At most ten minutes, in case a test hangs.
  (cd "$RUST_CLIENT" && timeout 600 cargo test --locked --no-fail-fast >"$log" 2>&1) || tail -n 40 "$log"
  # An ignored test was not run.
  sed -nE 's/^test (.*) \.\.\. ok$/pass\t\1\t/p; s/^test (.*) \.\.\. FAILED$/fail\t\1\tsee build\/logs\/clients-rust.log/p
    s/^test (.*) \.\.\. ignored.*/fail\t\1\twas ignored/p; s/^error(.*)/fail\tcargo test\t\1/p' "$log" | cases rust
  check "rust: README's commands" readme rust
  if command -v rustfmt >/dev/null; then
    check "rust: rustfmt" "$QUANTD_ROOT/tests/format.sh" --check rust
  fi
}
