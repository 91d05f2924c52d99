# shellcheck shell=bash
# buildah and podman without a daemon and with few privileges (in a container, in a chroot): chroot isolation, plain copies as
# storage, limits that such a place allows. Sourced by tests/suites/image.sh.

storage=(--root="$QUANTD_BUILD/image/storage" --runroot="$QUANTD_BUILD/image/run" --storage-driver=vfs)
base=docker.io/library/debian:bookworm-slim

buildah_here() { buildah "${storage[@]}" "$@"; }
podman_here() { podman "${storage[@]}" --runtime=runc --cgroup-manager=cgroupfs --events-backend=file "$@"; }

# podman's own defaults for these limits are above what such a place allows.
start_here() { podman_here run --detach --ulimit=nofile=4096:4096 --ulimit=nproc=4096:4096 "$@"; }

# Whether buildah can make an image at all: it unpacks layers in a mount namespace, which a plain chroot does not allow.
can_build() {
  local container
  container=$(buildah_here from scratch) && buildah_here add --quiet "$container" "$QUANTD_ROOT/LICENSE" / &&
    buildah_here commit --quiet --rm "$container" localhost/probe && buildah_here rmi localhost/probe
}

# The base image: the published one, or, if the registry cannot be reached, one made with debootstrap.
prepare_base() {
  {
    buildah_here images --quiet "$base" && return
    timeout 120 buildah "${storage[@]}" pull --quiet "$base" && return
    make_base
  } >"$QUANTD_LOGS/image-base.log" 2>&1
}

make_base() {
  local root=$QUANTD_BUILD/image/base container
  rm -rf "$root"
  debootstrap --variant=minbase --include=ca-certificates bookworm "$root" || return
  rm -rf "$root"/var/cache/apt/archives/*.deb
  chmod 0755 "$root"
  container=$(buildah_here from scratch) &&
    buildah_here add --quiet "$container" "$root" / &&
    buildah_here config --env PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin --cmd bash "$container" &&
    buildah_here commit --quiet "$container" "$base" &&
    buildah_here rm "$container" &&
    rm -rf "$root"
}

# build_image NAME [ARCHITECTURE [OPTIONS...]]: for this machine's own or another architecture, which needs no emulation. This machine's
# compiler cache is used. Without BUILDPLATFORM, like `docker build` without BuildKit. Health checks exist in Docker's image format only.
build_image() {
  local name=$1 architecture=${2:-$(dpkg --print-architecture)}
  shift $(($# < 2 ? 1 : 2))
  buildah_here bud --layers --isolation=chroot --format=docker --pull-never --platform="linux/$architecture" "$(cache_volume)" \
    --target=image --tag "$name" "$@" "$QUANTD_ROOT"
}

cache_volume() {
  local cache
  cache=$(ccache --get-config cache_dir) && mkdir -p "$cache" && echo "--volume=$cache:/var/cache/ccache"
}
