# The image of quantd: the two binaries, the libraries that they load, CA certificates, and nothing else. No shell.
#
#   docker build -t quantd .        (or: podman build --format docker -t quantd .)
#   docker run --rm -p 50051:50051 -p 9464:9464 --read-only --cap-drop=ALL quantd
#
# Builds for the architecture on which it runs (amd64, arm64). Needs no writable file system and no capability, and runs
# under any user id.

FROM docker.io/library/debian:bookworm-slim AS build
WORKDIR /source
# The packages first: this layer stays in the cache while the sources change.
COPY deploy/packages.sh deploy/lib.sh deploy/
RUN deploy/packages.sh install build
COPY . .
RUN bash -c 'source deploy/lib.sh && build_tree release quantd quantctl -- -DQUANTD_BUILD_TESTS=OFF'
RUN deploy/collect_image.sh /image build/release/server/quantd build/release/client/quantctl

FROM scratch
COPY --from=build /image /
# Inside a container, the port is closed to the world until someone publishes it; so listen on every interface.
ENV QUANTD_LISTEN=[::]:50051 \
    QUANTD_HTTP_LISTEN=[::]:9464
EXPOSE 50051 9464
USER 65532:65532
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s CMD ["/quantctl", "health", "--address=127.0.0.1:50051"]
ENTRYPOINT ["/quantd"]
