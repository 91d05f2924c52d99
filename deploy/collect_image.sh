#!/usr/bin/env bash
# Puts programs and all that they need at run time into a folder that becomes a container's root file system:
#   collect_image.sh FOLDER PROGRAM...
# The libraries are those that ldd lists, at the paths where the loader looks for them, so that it holds on every
# architecture.

set -euo pipefail
root=$1
shift

mkdir -p "$root"/etc/ssl/certs "$root/tmp" "$root/run/quantd"
chmod 1777 "$root/tmp" "$root/run/quantd"
for program in "$@"; do
  install -m 0755 "$program" "$root/$(basename "$program")"
  strip --strip-unneeded "$root/$(basename "$program")"
  # "name => /path (address)", and the loader as "/path (address)". A library not found is an error.
  ldd "$program" | awk '/not found/ { print > "/dev/stderr"; failed = 1 } $2 == "=>" { print $3 } $1 ~ /^\// { print $1 } END { exit failed }' |
    while read -r library; do
      mkdir -p "$root$(dirname "$library")"
      cp --dereference --no-clobber "$library" "$root$library"
    done
done

cp /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
echo 'quantd:x:65532:65532:quantd:/:/nonexistent' >"$root/etc/passwd"
echo 'quantd:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
du -sh "$root"
