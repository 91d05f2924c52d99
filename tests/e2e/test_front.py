"""The front in deploy/front, for networks that are not trusted: honest calls pass, attacks do not."""

import os
import pathlib
import platform
import shutil
import socket
import ssl
import subprocess
import time

import grpc
import numpy as np
import pytest

from certificates import Authority
from http2 import CONTINUATION, DATA, END_HEADERS, HEADERS, PING, RST_STREAM, Peer, frame, literal, request_headers
from support import ROOT, pb, pb_grpc, quantize, tensor, wait_for

HAPROXY = pathlib.Path(shutil.which("haproxy") or "haproxy")

pytestmark = [pytest.mark.gate, pytest.mark.skipif(not HAPROXY.exists(), reason="haproxy is not installed")]


@pytest.fixture(scope="module")
def front(server, tmp_path_factory):
    """The address of an HAProxy that runs in front of `server`, and who has signed its certificate."""
    folder = tmp_path_factory.mktemp("front")
    authority = Authority(folder / "ca")
    certificate, key = authority.sign("front")
    both = folder / "front.pem"
    both.write_text(certificate.read_text() + key.read_text())
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    # The libraries of a haproxy that is unpacked but not installed.
    libraries = HAPROXY.parents[1] / "lib" / f"{platform.machine()}-linux-gnu"
    environment = {**os.environ, "LD_LIBRARY_PATH": str(libraries), "LISTEN": f"127.0.0.1:{port}", "QUANTD": server.address, "CERTIFICATE": str(both)}
    with open(folder / "log", "w") as log:
        process = subprocess.Popen([HAPROXY, "-f", ROOT / "deploy/front/haproxy.cfg"], env=environment, stdout=log, stderr=log)

    def listens():
        assert process.poll() is None, (folder / "log").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_for(listens, 10, "haproxy listens")
    yield f"localhost:{port}", authority.file.read_bytes()
    process.terminate()
    process.wait(10)


def context():
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    tls.check_hostname = False
    tls.verify_mode = ssl.CERT_NONE
    tls.set_alpn_protocols(["h2"])
    return tls


def honest(front):
    address, certificate = front
    credentials = grpc.ssl_channel_credentials(certificate)
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
    return pb_grpc.QuantizationServiceStub(grpc.secure_channel(address, credentials, options=options))


def test_honest_calls_come_through(front):
    stub = honest(front)
    assert stub.Quantize(quantize([1.0, 2.0]), timeout=10).y.raw_data == b"\x02\x04"
    large = stub.DynamicQuantize(pb.DynamicQuantizeRequest(x=tensor(np.linspace(-1, 1, 4 << 20))), timeout=30)
    assert len(large.y.raw_data) == 4 << 20
    items = (pb.StreamRequest(id=i, quantize=quantize([float(i)], scale=1.0)) for i in range(1, 50))
    assert [answer.id for answer in stub.Stream(items, timeout=10)] == list(range(1, 50))
    error = stub.Quantize.future(pb.QuantizeRequest(), timeout=10).exception()
    assert error.code() == grpc.StatusCode.INVALID_ARGUMENT and "x is required" in error.details()


def test_clients_share_no_connection(front, server):
    """quantd reads slowly from a connection that floods it: other clients on the same connection would wait for seconds."""
    before = server.metrics()["quantd_connections_accepted_total"]
    stubs = [honest(front) for _ in range(5)]
    for stub in stubs:
        for _ in range(3):
            stub.Quantize(quantize([1.0]), timeout=10)
    assert server.metrics()["quantd_connections_accepted_total"] - before == len(stubs)


def test_open_calls_of_one_address_keep_nobody_out(front, server):
    address = front[0].replace("localhost", "127.0.0.1")
    with Peer(address, source="127.0.0.9", tls=context()) as first, Peer(address, source="127.0.0.9", tls=context()) as second:
        for _ in range(100):
            first.open("Quantize")
        wait_for(lambda: server.metrics()["quantd_calls"] >= 100, 10, "as many as one address may have are open")
        assert honest(front).Quantize(quantize([1.0]), timeout=4).y.raw_data == b"\x02"
        stream = second.open("Quantize")
        second.ended(stream)
        assert second.headers[stream][":status"] == "429"


def opened(peer):
    return frame(HEADERS, END_HEADERS, peer.next_stream(), request_headers())


ATTACKS = {
    "resets": lambda peer: opened(peer) + frame(RST_STREAM, 0, peer.stream, b"\0\0\0\x08"),
    "streams": opened,
    "endless_headers": lambda peer: frame(CONTINUATION, 0, peer.stream, literal("a" * 50, "b" * 100) * 90),
    "pings": lambda peer: frame(PING, 0, 0, b"12345678") * 50,
}


@pytest.mark.parametrize("attack", ATTACKS)
def test_attacks_end_at_the_front(front, server, attack):
    stub = honest(front)
    stub.Quantize(quantize([1.0]), timeout=10)
    before = server.status()
    address = front[0].replace("localhost", "127.0.0.1")
    try:
        with Peer(address, polite=attack != "streams", source="127.0.0.9", tls=context()) as peer:
            peer.socket.settimeout(0.2)
            if attack == "endless_headers":
                peer.send(frame(HEADERS, 0, peer.next_stream(), request_headers()))
            end = time.monotonic() + 1.5
            while time.monotonic() < end:
                peer.send(ATTACKS[attack](peer) * (1 if attack in ("resets", "streams") else 10))
    except OSError:
        pass  # it was closed
    stub.Quantize(quantize([1.0]), timeout=10)
    assert server.process.poll() is None
    assert server.status()["VmRSS"] - before["VmRSS"] < 32 * 1024


def test_who_sends_no_headers_is_let_go(front):
    with Peer(front[0].replace("localhost", "127.0.0.1"), tls=context()) as peer:
        peer.send(frame(HEADERS, 0, 1, request_headers()[:20]))
        assert peer.closed(30)


def test_what_is_no_call_is_refused(front):
    with Peer(front[0].replace("localhost", "127.0.0.1"), tls=context()) as peer:
        stream = peer.next_stream()
        headers = request_headers().replace(b"POST", b"BREW")
        peer.send(frame(HEADERS, END_HEADERS, stream, headers) + frame(DATA, 1, stream))
        peer.ended(stream)
        assert peer.headers[stream][":status"] == "405"
