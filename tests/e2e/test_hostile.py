"""Hostile peers: what they send is bounded in memory and in time, and other clients are served. Each attack here took gigabytes, every permit, a
thread each or the listener of a server that trusted its HTTP/2 library to limit it."""

import struct
import sys
import time

import pytest

from bystander import Bystander
from http2 import (
    CONTINUATION, DATA, END_HEADERS, GOAWAY, HEADERS, PING, PRIORITY, RST_STREAM, SETTINGS, WINDOW_UPDATE, Peer, frame, literal,
    message, request_headers, settings,
)
from support import pb, rounds, tensor, wait_for

pytestmark = pytest.mark.gate

SECONDS = 1.5
CANCEL = struct.pack(">I", 8)
SMALL = pb.DynamicQuantizeRequest(x=tensor([1.0, 2.0])).SerializeToString()
HUGE_PREFIX = b"\x00" + struct.pack(">I", 60 << 20)


@pytest.fixture(autouse=True)
def interpreter_in_turns():
    """Attacker and bystander share an interpreter, which switches between threads every 5 ms by itself: the server is to be
    measured."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(0.0001)
    yield
    sys.setswitchinterval(before)


def flood(peer, make):
    """Sends what `make` returns repeatedly, until the time is over or the server stops it."""
    end = time.monotonic() + SECONDS
    peer.socket.settimeout(0.2)
    sent = 0
    while time.monotonic() < end:
        try:
            peer.send(make())
            sent += 1
        except TimeoutError:
            continue  # the server stops reading: that is its answer
        except OSError:
            break
    return sent


def rapid_reset(peer):
    def calls():
        streams = [peer.next_stream() for _ in range(200)]
        return b"".join(frame(HEADERS, END_HEADERS, s, request_headers()) + frame(RST_STREAM, 0, s, CANCEL) for s in streams)

    flood(peer, calls)


def resets_after_work(peer):
    """Each call is complete, so that it could be computed, and is cancelled at once."""

    def calls():
        streams = [peer.next_stream() for _ in range(50)]
        return b"".join(
            frame(HEADERS, END_HEADERS, s, request_headers()) + frame(DATA, 1, s, message(SMALL)) + frame(RST_STREAM, 0, s, CANCEL)
            for s in streams
        )

    flood(peer, calls)


def streams_before_the_acknowledgement(peer):
    flood(peer, lambda: b"".join(frame(HEADERS, END_HEADERS, peer.next_stream(), request_headers()) for _ in range(200)))


def one_byte_frames(peer):
    stream = peer.open()
    peer.send(frame(DATA, 0, stream, HUGE_PREFIX))
    flood(peer, lambda: frame(DATA, 0, stream, b"x") * 1000)


def empty_frames(peer):
    stream = peer.open()
    flood(peer, lambda: frame(DATA, 0, stream) * 1000)


def padded_frames(peer):
    stream = peer.open()
    peer.send(frame(DATA, 0, stream, HUGE_PREFIX))
    flood(peer, lambda: frame(DATA, 8, stream, b"\xff" + bytes(255)) * 100)


def endless_integer(peer):
    peer.send(frame(HEADERS, 0, peer.next_stream(), b"\x00\x7f" + b"\xff" * 8000))
    flood(peer, lambda: frame(CONTINUATION, 0, peer.stream, b"\xff" * 16000))


def endless_headers(peer):
    peer.send(frame(HEADERS, 0, peer.next_stream(), request_headers()))
    flood(peer, lambda: frame(CONTINUATION, 0, peer.stream, literal("a" * 50, "b" * 100) * 90))


def header_bomb(peer):
    """One entry of the table, with a reference of one byte each: 4 KiB become 16 MiB."""
    entry = b"\x40" + b"\x01" + b"x" + b"\x7f" + bytes([0x81, 0x1D]) + b"y" * 3840  # a value of 3,968 bytes
    block = request_headers() + entry[: 3 + 3 + 3840]

    def bomb():
        stream = peer.next_stream()
        return frame(HEADERS, END_HEADERS, stream, block + b"\xbe" * 4000)

    flood(peer, bomb)


def pings(peer):
    flood(peer, lambda: frame(PING, 0, 0, b"12345678") * 500)


def settings_again(peer):
    flood(peer, lambda: frame(SETTINGS, 0, 0, settings(window=65535)) * 500)


def table_size_again(peer):
    flood(peer, lambda: frame(SETTINGS, 0, 0, struct.pack(">HIHI", 1, 0, 1, 1 << 30)) * 500)


def priorities(peer):
    numbers = iter(range(1, 1 << 30, 2))
    flood(peer, lambda: b"".join(frame(PRIORITY, 0, next(numbers), b"\0\0\0\0\x10") for _ in range(500)))


def crumbs_of_window(peer):
    stream = peer.open()
    flood(peer, lambda: frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 1)) * 500)


def unknown_frames(peer):
    flood(peer, lambda: frame(0xBE, 0, 0, bytes(9)) * 500)


def goodbyes(peer):
    flood(peer, lambda: frame(GOAWAY, 0, 0, bytes(8)) * 500)


ATTACKS = [
    rapid_reset, resets_after_work, streams_before_the_acknowledgement, one_byte_frames, empty_frames, padded_frames, endless_integer,
    endless_headers, header_bomb, pings, settings_again, table_size_again, priorities, crumbs_of_window, unknown_frames, goodbyes,
]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_a_flood_slows_down_only_itself(server, attack):
    polite = attack is not streams_before_the_acknowledgement
    with Bystander(server) as bystander:
        with Peer(server.address, polite=polite) as peer:
            attack(peer)
    bystander.unharmed(memory_mib=32)
    wait_for(lambda: server.metrics()["quantd_calls"] == 0, 10, "nothing is left of the attack")


def test_many_connections_with_open_streams(start):
    """20 connections open a hundred calls each, and a thousand more than allowed, without a byte of a request."""
    server = start()
    with Bystander(server) as bystander:
        peers = [Peer(server.address, polite=False) for _ in range(20)]
        for peer in peers:
            peer.send(b"".join(frame(HEADERS, END_HEADERS, peer.next_stream(), request_headers()) for _ in range(1100)))
        time.sleep(SECONDS)
        assert server.metrics()["quantd_calls"] <= 2304 + 1024
        for peer in peers:
            peer.close()
    bystander.unharmed(memory_mib=48)
    wait_for(lambda: server.metrics()["quantd_calls"] == 0, 10, "nothing is left of the attack")


def test_calls_without_requests_make_room_for_calls_with_one(start):
    """More such calls than may be open at all: those of the client with the most calls end."""
    server = start("--max_inflight_requests=100", "--max_queued_requests=100", "--event_loops=1")
    with Bystander(server) as bystander:
        peers = [Peer(server.address) for _ in range(10)]
        for peer in peers:
            for _ in range(90):
                peer.open()
        time.sleep(SECONDS)
        for peer in peers:
            peer.close()
    bystander.unharmed(memory_mib=48)


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
        time.sleep(SECONDS)
        assert server.metrics()["quantd_calls"] >= 400
        assert server.health().Check(request=health_request(), timeout=5).status == 1
        for peer in peers:
            peer.close()
    bystander.unharmed(memory_mib=32)


def health_request():
    from support import health_pb2

    return health_pb2.HealthCheckRequest()


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
    metrics = server.metrics()
    assert metrics['quantd_connections_ended_total{reason="protocol_error"}'] >= 0
    assert server.process.poll() is None


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
    import socket

    host, port = server.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=5) as connection:
        connection.sendall(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
        answer = b""
        while data := connection.recv(4096):
            answer += data
    assert answer.startswith(b"HTTP/1.1 400 ") and b"gRPC" in answer
