"""--auth_token_file: clients with and without a token; and --socket_mode."""

import os
import stat
import urllib.error
import urllib.request

import grpc
import pytest

from http2 import HEADERS, Peer, frame, request_headers
from support import health_pb2, health_pb2_grpc, quantize, wait_for
from tls import files, start_tls  # noqa: F401

METHOD = 'grpc_type="unary",grpc_service="quantd.v1.QuantizationService",grpc_method="Quantize"'


@pytest.fixture
def token_file(tmp_path):
    file = tmp_path / "tokens"
    file.write_text("# those that count\n\n  first-token \nsecond.token==\n")
    return file


@pytest.fixture
def server(start, token_file):
    running = start(f"--auth_token_file={token_file}")
    yield running
    assert running.process.poll() is None
    assert "first-token" not in running.log() and "wrong-token" not in running.log()


def call(server, authorization=None, stub=None):
    metadata = [] if authorization is None else [("authorization", authorization)]
    return (stub or server.stub).Quantize(quantize([1.0]), timeout=10, metadata=metadata).y.raw_data


def refused(server, authorization=None):
    with pytest.raises(grpc.RpcError) as caught:
        call(server, authorization)
    assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
    return caught.value.details()


def test_who_may_call(server):
    assert call(server, "Bearer first-token") == b"\x02"
    assert call(server, "bearer second.token==") == b"\x02"
    assert "a token is required" in refused(server)
    for wrong in ("Bearer wrong-token", "Bearer first-toke", "Bearer first-token2", "Bearer", "Basic Zmlyc3Q6", "first-token", "Bearer #"):
        assert "wrong" not in refused(server, wrong)
    metrics = server.metrics
    server.get = lambda path: get(server, path, "first-token")
    samples = metrics()
    assert samples[f'grpc_server_handled_total{{{METHOD},grpc_code="Unauthenticated"}}'] == 8
    assert samples['quantd_rejected_total{reason="unauthenticated"}'] == 8


def test_what_needs_none(server):
    stub = health_pb2_grpc.HealthStub(server.channel())
    assert stub.Check(health_pb2.HealthCheckRequest(), timeout=10).status == 1
    assert next(iter(stub.Watch(health_pb2.HealthCheckRequest(), timeout=10))).status == 1
    assert server.get("/livez")[0] == server.get("/readyz")[0] == 200


def test_what_does(server):
    for path in (
        "/quantd.v1.QuantizationService/Stream", "/quantd.v1.QuantizationService/GetServerInfo", "/no.such/Method",
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    ):  # fmt: skip
        method = server.channel().stream_stream(path)
        with pytest.raises(grpc.RpcError) as caught:
            list(method(iter([b""]), timeout=10))
        assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED, path


def get(server, path, token=None):
    request = urllib.request.Request(f"http://{server.http}{path}", headers={"authorization": f"Bearer {token}"} if token else {})
    try:
        with urllib.request.urlopen(request, timeout=10) as response:
            return response.status, response.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.headers.get("www-authenticate", "") + error.read().decode()


def test_metrics(server):
    code, text = get(server, "/metrics")
    assert code == 401 and text.startswith("Bearer") and "a token is required" in text
    assert get(server, "/metrics", "wrong-token")[0] == 401
    assert get(server, "/metrics", "first-token")[0] == 200


def test_no_memory_for_who_has_none(server):
    """A message of 60 MiB is announced, and refused before a byte of it may arrive."""
    with Peer(server.address) as peer:
        stream = peer.next_stream()
        peer.send(frame(HEADERS, 4, stream, request_headers("Quantize")))
        peer.send(frame(0, 0, stream, b"\0" + (60 << 20).to_bytes(4, "big")))
        peer.ended(stream)
        assert peer.headers[stream]["grpc-status"] == "16"
        lines = get(server, "/metrics", "first-token")[1].splitlines()
        assert "quantd_receiving_bytes 0" in lines and "quantd_calls 0" in lines


def test_rotation(server, token_file):
    """Both tokens are valid until every client has the new one; a file without a token changes nothing."""
    token_file.write_text("first-token\nthird-token\n")
    wait_for(lambda: "tokens reloaded number=2" in server.log(), 20, "the new tokens")
    assert call(server, "Bearer first-token") == call(server, "Bearer third-token") == b"\x02"
    refused(server, "Bearer second.token==")
    token_file.write_text("# nothing\n")
    wait_for(lambda: "tokens not reloaded, the old ones stay in use" in server.log(), 20, "a line")
    assert call(server, "Bearer third-token") == b"\x02"
    part = token_file.with_suffix(".part")
    part.write_text("third-token")
    os.replace(part, token_file)
    wait_for(lambda: "tokens reloaded number=1" in server.log(), 20, "the last tokens")
    refused(server, "Bearer first-token")


# ---- Unix sockets


@pytest.mark.parametrize("flag, mode", [(None, 0o660), ("--socket_mode=0600", 0o600), ("--socket_mode=777", 0o777)])
def test_socket_mode(start, tmp_path, flag, mode):
    path = tmp_path / "s"
    old = os.umask(0o077)  # which changes nothing
    try:
        start(*([flag] if flag else []), listen=("127.0.0.1:0", f"unix:{path}"))
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == mode
