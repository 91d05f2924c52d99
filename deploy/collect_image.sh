#!/usr/bin/env bash
# Puts programs and everything that they need at run time into a folder that becomes a container's root file system:
#   collect_image.sh [--symbols=FOLDER] FOLDER PROGRAM...
# With --symbols, the symbols are removed from the programs and written into that folder, at the paths where debuggers look for them
# by build id. The libraries are those that the programs need, and those that these need, at the paths where the loader looks for
# them. It reads the files and runs none, so it also works with programs of another architecture.

set -euo pipefail
symbols=""
if [[ $1 == --symbols=* ]]; then
  symbols=${1#*=}
  shift
fi
root=$1
shift

needed() { readelf --dynamic --wide "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'; }
loader_of() { readelf --program-headers --wide "$1" | sed -n 's/.*program interpreter: \(.*\)\]/\1/p'; }
triplet_of() {
  case $(readelf --file-header "$1" | sed -n 's/^ *Machine: *//p') in
    AArch64) echo aarch64-linux-gnu ;;
    *X86-64) echo x86_64-linux-gnu ;;
    *) echo "collect_image.sh: $1 is for neither amd64 nor arm64" >&2 && return 1 ;;
  esac
}

# take FILE: copies the libraries that this file needs, and those that they need.
take() {
  local name path
  while read -r name; do
    [[ $name == "$(basename "$loader")" ]] && continue
    for path in "/lib/$triplet/$name" "/usr/lib/$triplet/$name" ""; do [[ -e $path ]] && break; done
    [[ -n $path ]] || { echo "collect_image.sh: $1 needs $name, which is not in /lib/$triplet" >&2 && return 1; }
    [[ -e $root$path ]] && continue
    install -D --mode=0644 "$path" "$root$path"
    take "$path" || return
  done < <(needed "$1")
}

# split PROGRAM: moves its symbols to /usr/lib/debug/.build-id/12/345....debug.
split() {
  local id file
  id=$(readelf --notes --wide "$1" | sed -n 's/.*Build ID: //p')
  [[ -n $id ]] || { echo "collect_image.sh: $1 has no build id" >&2 && return 1; }
  file=$symbols/usr/lib/debug/.build-id/${id:0:2}/${id:2}.debug
  mkdir -p "$(dirname "$file")"
  "$triplet-objcopy" --only-keep-debug "$1" "$file"
  chmod 0644 "$file"
}

mkdir -p "$root"/etc/ssl/certs "$root/tmp" "$root/run/quantd"
chmod 1777 "$root/tmp" "$root/run/quantd"
for program in "$@"; do
  triplet=$(triplet_of "$program")
  loader=$(loader_of "$program")
  [[ -z $symbols ]] || split "$program"
  install -m 0755 "$program" "$root/$(basename "$program")"
  "$triplet-strip" --strip-unneeded "$root/$(basename "$program")"
  install -D --mode=0755 "$loader" "$root$loader"
  take "$program"
done

install --mode=0644 /etc/ssl/certs/ca-certificates.crt "$root/etc/ssl/certs/"
# Where OpenSSL looks for it.
mkdir -p "$root/usr/lib/ssl"
ln -sfn /etc/ssl/certs/ca-certificates.crt "$root/usr/lib/ssl/cert.pem"
install --mode=0644 /etc/os-release "$root/etc/"
echo 'quantd:x:65532:65532:quantd:/:/nonexistent' >"$root/etc/passwd"
echo 'quantd:x:65532:' >"$root/etc/group"
echo 'hosts: files dns' >"$root/etc/nsswitch.conf"
du -sh "$root"
