# The image of quantd: the two binaries, the libraries that they load, CA certificates, a bill of materials, and nothing
# else. No shell.
#
#   docker build -t quantd .        (or: podman build --format docker -t quantd .)
#   docker run --rm -p 50051:50051 -p 9464:9464 --read-only --cap-drop=ALL quantd
#   docker buildx build --platform linux/amd64,linux/arm64 -t quantd .      both, compiled here, not emulated
#
# Needs no writable file system and no capability, and runs under any user id.

# Builders without BuildKit do not set BUILDPLATFORM.
FROM --platform=${BUILDPLATFORM:-linux/amd64} docker.io/library/debian:bookworm-slim AS build
# Set by the builder: amd64 or arm64. Empty in builders that do not know platforms: the machine's own.
ARG TARGETARCH
WORKDIR /source
# The packages first: this layer stays in the cache while the sources change.
COPY deploy/packages.sh deploy/lib.sh deploy/
RUN deploy/packages.sh cross "${TARGETARCH:-$(dpkg --print-architecture)}" build
COPY . .
# A compiler cache that is mounted there is also valid for trees in other folders.
ENV CCACHE_DIR=/var/cache/ccache CCACHE_BASEDIR=/source CCACHE_NOHASHDIR=1
RUN bash -c 'source deploy/lib.sh && build_for "${TARGETARCH:-$(dpkg --print-architecture)}" quantd quantctl && \
      ln -s "$(dirname "$(dirname build/*/server/quantd)")" tree'
RUN deploy/collect_image.sh --symbols=/symbols /image tree/server/quantd tree/client/quantctl
# For the bill: the version, and its date in seconds since 1970.
ARG VERSION=0.1.0
ARG SOURCE_DATE_EPOCH=0
RUN deploy/sbom.py --root=/image --tree=tree --version="$VERSION" --epoch="$SOURCE_DATE_EPOCH" \
      --output=/image/usr/share/sbom/quantd.spdx.json --notices=/image

# Only the bill: docker build --target sbom --output=FOLDER .
FROM scratch AS sbom
COPY --from=build /image/usr/share/sbom /

# What debuggers and addr2line need for both programs, by build id: docker build --target symbols --output=FOLDER .
FROM scratch AS symbols
COPY --from=build /symbols /

# gdb next to a running server (deploy/monitoring/RUNBOOK.md, "Stacks"): docker build --target debug -t quantd:0.1.0-debug .
FROM build AS debugger
RUN deploy/packages.sh cross "${TARGETARCH:-$(dpkg --print-architecture)}" debugger
RUN deploy/collect_image.sh /debugger /usr/bin/gdb /bin/busybox

FROM scratch AS debug
COPY --from=debugger /debugger /
COPY --from=build /symbols /
COPY deploy/gdbinit /etc/gdb/gdbinit
USER 65532:65532
ENTRYPOINT ["/gdb", "-p", "1", "-batch", "-ex", "thread apply all backtrace"]

# docker build --target debs --output=FOLDER . writes the Debian packages into a folder.
FROM build AS packages
RUN deploy/packages.sh install package
RUN DEB_HOST_ARCH="${TARGETARCH:-$(dpkg --print-architecture)}" cpack --config tree/CPackConfig.cmake -B /packages && \
      rm -rf /packages/_CPack_Packages

FROM scratch AS debs
COPY --from=packages /packages /

FROM scratch AS image
ARG VERSION=0.1.0
# The commit, its time (RFC 3339), and the address of the sources.
ARG REVISION=""
ARG CREATED=""
ARG SOURCE=""
LABEL org.opencontainers.image.title="quantd" \
      org.opencontainers.image.description="Quantizes tensors over gRPC, bit for bit as ONNX defines it" \
      org.opencontainers.image.version="$VERSION" \
      org.opencontainers.image.revision="$REVISION" \
      org.opencontainers.image.created="$CREATED" \
      org.opencontainers.image.source="$SOURCE" \
      org.opencontainers.image.licenses="Apache-2.0"
COPY --from=build /image /
# In a container, nobody outside can reach the port until it is published; so listen on every interface.
ENV QUANTD_LISTEN=[::]:50051 \
    QUANTD_HTTP_LISTEN=[::]:9464
EXPOSE 50051 9464
USER 65532:65532
STOPSIGNAL SIGTERM
# Probes the first address of QUANTD_LISTEN.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["/quantctl", "health", "--quiet"]
ENTRYPOINT ["/quantd"]
