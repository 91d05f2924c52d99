# shellcheck shell=bash
source "$SUITES/venv.sh"
source "$SUITES/debs.sh"

prepare() {
  unpack_program kubectl kubernetes-client '^(kubectl|kubernetes-client)$' &&
    unpack_program promtool prometheus '^(prometheus|promtool)$' &&
    unpack_program systemd-analyze systemd '^(systemd|libsystemd-shared|libfdisk1|libmount1|libblkid1|libseccomp2)$' && prepare_venv
}

run() {
  debs_path
  pytest_suite deploy tests/deploy
}
