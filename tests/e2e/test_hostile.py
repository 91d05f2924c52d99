"""Hostile peers: what they send is bounded in memory and in time, and other clients are served. Each attack here took gigabytes, every permit, a
thread each or the listener of a server that trusted its HTTP/2 library to limit it."""

import contextlib
import socket
import struct
import sys

import pytest

from bystander import Bystander
from http2 import DATA, END_HEADERS, END_STREAM, HEADERS, RST_STREAM, Peer, frame, message, request_headers
from support import health_pb2, pb, rounds, tensor, wait_for

pytestmark = pytest.mark.gate

SMALL = pb.DynamicQuantizeRequest(x=tensor([1.0, 2.0])).SerializeToString()
CANCEL = struct.pack(">I", 8)


@pytest.fixture(autouse=True)
def interpreter_in_turns():
    """Attacker and bystander share an interpreter, which switches between threads every 5 ms by itself: the server is to be
    measured."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)
    yield
    sys.setswitchinterval(before)


def test_a_thread_is_nobodys_to_take(start):
    """Streams of health and reflection that nobody reads: they do not take a thread each."""
    server = start()
    with Bystander(server) as bystander:
        peers = [Peer(server.address, window=0) for _ in range(5)]
        for peer in peers:
            for path in ("/grpc.health.v1.Health/Watch", "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"):
                for _ in range(45):
                    stream = peer.next_stream()
                    headers = frame(HEADERS, END_HEADERS, stream, request_headers(path=path))
                    question = b"" if "Watch" in path else b"\x3a\x01*"
                    peer.send(headers + frame(DATA, 0, stream, message(question)))
        wait_for(lambda: server.metrics()["quantd_calls"] >= 400, 20, "all streams are open")
        assert server.health().Check(health_pb2.HealthCheckRequest(), timeout=5).status == 1
        for peer in peers:
            peer.close()
    bystander.unharmed(memory_mib=32)


def test_a_client_that_cancels_all_day_is_served(server):
    """For seconds, calls are cancelled as fast as a grpc client can; every other call in between is answered."""
    call = server.channel().unary_unary("/quantd.v1.QuantizationService/DynamicQuantize")
    answered = 0
    for _ in rounds(3, lambda: answered > 20):
        futures = [call.future(SMALL, timeout=10) for _ in range(50)]
        for future in futures[1:]:
            future.cancel()
        assert futures[0].result()
        answered += 1
    assert answered > 20


@pytest.mark.parametrize("timeout", ["0n", "1n", "1u"])
def test_a_deadline_that_has_passed_before_its_call_starts(server, timeout):
    """The message is complete and dropped before it is read; reading it then used to end the server."""
    headers = request_headers(extra=[("grpc-timeout", timeout)])
    with Peer(server.address) as peer:
        for _ in range(50):
            stream = peer.next_stream()
            peer.send(frame(HEADERS, END_HEADERS, stream, headers) + frame(DATA, 1, stream, message(SMALL)))
            peer.ended(stream)
            assert peer.headers.get(stream, {"grpc-status": "4"})["grpc-status"] in ("0", "4")
    assert server.process.poll() is None, server.log()[-2000:]


def test_what_is_not_http2_is_told_so(server):
    host, port = server.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while data := connection.recv(4096):
            answer += data
    assert answer.startswith(b"HTTP/1.1 400 ") and b"gRPC" in answer


def test_one_that_reads_again_is_served(server):
    """It may be left unread for a while, but is not closed if it reads its responses in time."""
    path = "/grpc.health.v1.Health/Check"
    with Peer(server.address, receive_buffer=1 << 16, window=(1 << 31) - 1) as peer:
        peer.socket.settimeout(0.2)
        headers = request_headers(path=path)
        data = b"".join(
            frame(HEADERS, END_HEADERS, stream, headers) + frame(DATA, END_STREAM, stream, message(b"")) + frame(RST_STREAM, 0, stream, CANCEL)
            for stream in range(1, 2 * 8000, 2)
        )
        while data:
            try:
                data = data[peer.socket.send(data[: 1 << 16]) :]
            except TimeoutError:
                with contextlib.suppress(TimeoutError):
                    peer.read_frame()
        peer.socket.settimeout(20)
        answered = 2 * 8000 + 1
        peer.send(frame(HEADERS, END_HEADERS, answered, headers) + frame(DATA, END_STREAM, answered, message(b"")))
        assert peer.ended(answered) == message(b"\x08\x01")
