"""Peers that send and never read: memory, a bystander's p99 and the connection's end are held to their bounds. test_ledger.py does it
with every frame in every state of a stream."""

import contextlib
import struct
import time

import pytest

from bystander import Bystander
from http2 import (
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, SETTINGS, Peer, frame, literal, message, request_headers,
    settings,
)
from support import pb, tensor, wait_for

SMALL = message(pb.DynamicQuantizeRequest(x=tensor([1.0, 2.0])).SerializeToString())
CANCEL = struct.pack(">I", 8)
SOURCE = "127.0.0.2"  # the attackers' address: a bystander is another peer


def call(stream, path=None, extra=(), body=SMALL):
    headers = frame(HEADERS, END_HEADERS, stream, request_headers(path=path, extra=extra))
    return headers + frame(DATA, END_STREAM, stream, body)


def flood(peer, make, seconds, read):
    """Sends what `make` returns as long as the server takes it. Reads all that is there, or nothing. Whether the server ended it."""
    end = time.monotonic() + seconds
    peer.socket.settimeout(0.05)
    while time.monotonic() < end:
        try:
            peer.send(make())
        except TimeoutError:
            pass  # the server reads no further: that is its answer
        except OSError:
            return True
        if read:
            with contextlib.suppress(TimeoutError):
                peer.socket.recv(1 << 20)
    return False


def refusals(path="/no.such/Method", extra=(), reset=False):
    def calls(peer):
        streams = [peer.next_stream() for _ in range(100)]
        return b"".join(call(s, path=path, extra=extra) + (frame(RST_STREAM, 0, s, CANCEL) if reset else b"") for s in streams)

    return calls


ATTACKS = {
    "unknown path": refusals(),
    "unknown path of 4 KiB": refusals(path="/" + "x" * 4000),
    "compressed": refusals(path=None, extra=[("grpc-encoding", "zstd")]),
    "answered": refusals(path="/grpc.health.v1.Health/Check"),
    "answered and reset": refusals(path="/grpc.health.v1.Health/Check", reset=True),
    "computed": refusals(path=None),
    "computed and reset": refusals(path=None, reset=True),
    "refused and reset": refusals(reset=True),
    "pings": lambda peer: frame(PING, 0, 0, b"12345678") * 500,
    "settings": lambda peer: frame(SETTINGS, 0, 0, settings(window=65535)) * 500,
}


@pytest.mark.parametrize("connections", [1, 16])
@pytest.mark.parametrize("name", ATTACKS)
def test_what_nobody_reads_is_bounded(start, name, connections):
    """Held back, and closed after --stall_timeout with a reason that is counted."""
    server = start("--stall_timeout=1s")

    def held_back():
        """How many connections were slowed down for their many frames without use, or held back and then ended."""
        metrics = server.metrics()
        reasons = ("unread", "protocol_error")  # nghttp2 ends floods of acknowledgements with the latter
        counted = sum(metrics[f'quantd_connections_ended_total{{reason="{reason}"}}'] for reason in reasons)
        return counted + metrics["quantd_connections_throttled_total"]

    with Bystander(server) as bystander, contextlib.ExitStack() as stack:
        peers = [
            stack.enter_context(Peer(server.address, source=SOURCE, receive_buffer=4096, window=(1 << 31) - 1))
            for _ in range(connections)
        ]
        ended = [False] * connections
        began = time.monotonic()
        # For four seconds, and on a machine that is busy for as long as so many peers take to send too much.
        while not all(ended) and (time.monotonic() < began + 4 or held_back() < connections) and time.monotonic() < began + 60:
            for i, peer in enumerate(peers):
                ended[i] = ended[i] or flood(peer, lambda: ATTACKS[name](peer), 0.05, False)  # noqa: B023
    bystander.unharmed(memory_mib=48, p99_seconds=2)
    assert held_back() >= connections
    wait_for(lambda: server.metrics()["quantd_calls"] == 0, 10, "nothing is left of the attack")


def test_one_that_reads_again_is_served(server):
    """It may be held back, and is not ended, when it takes what it has caused in time."""
    path = "/grpc.health.v1.Health/Check"
    with Peer(server.address, receive_buffer=1 << 16, window=(1 << 31) - 1) as peer:
        streams = [peer.next_stream() for _ in range(8000)]
        peer.socket.settimeout(0.2)
        data = b"".join(call(s, path=path, body=message(b"")) + frame(RST_STREAM, 0, s, CANCEL) for s in streams)
        while data:
            try:
                data = data[peer.socket.send(data[: 1 << 16]) :]
            except TimeoutError:
                with contextlib.suppress(TimeoutError):
                    peer.read_frame()
        peer.socket.settimeout(20)
        answered = peer.next_stream()
        peer.send(call(answered, path=path, body=message(b"")))
        assert peer.ended(answered) == message(b"\x08\x01")


def bombs(entry_bytes):
    """Blocks whose few bytes refer to one large entry of the table again and again."""
    value = b"y" * (entry_bytes - 33)
    length = b"\x7f" + bytes([(len(value) - 127) & 127 | 128, (len(value) - 127) >> 7])
    block = request_headers() + b"\x40\x01x" + length + value

    def bomb(peer):
        return frame(HEADERS, END_HEADERS, peer.next_stream(), block + b"\xbe" * 10000)

    return bomb


def test_header_bombs_beside_a_bystander(start):
    server = start("--drain_seconds=2", "--lame_duck_seconds=0")
    with Bystander(server) as bystander:
        end = time.monotonic() + 4
        while time.monotonic() < end:
            with contextlib.ExitStack() as stack:
                for _ in range(100):
                    peer = stack.enter_context(Peer(server.address, source=SOURCE))
                    with contextlib.suppress(OSError):
                        peer.send(bombs(3000)(peer) * 8)
    bystander.unharmed(memory_mib=64)
    assert server.metrics()['quantd_connections_ended_total{reason="headers"}'] > 100
    with contextlib.ExitStack() as stack:
        for _ in range(100):
            peer = stack.enter_context(Peer(server.address, source=SOURCE))
            with contextlib.suppress(OSError):
                peer.send(bombs(3000)(peer))
        began = time.monotonic()
        assert server.stop() == 0
        assert time.monotonic() - began < 5


def test_metadata_a_little_too_large_is_answered(server):
    with Peer(server.address) as peer:
        stream = peer.next_stream()
        headers = request_headers(extra=[("x-large", "x" * 17000)])
        peer.send(frame(HEADERS, 0, stream, headers[:9000]) + frame(CONTINUATION, END_HEADERS, stream, headers[9000:]))
        assert peer.ended(stream) is not None
        assert peer.headers[stream]["grpc-status"] == "8"


def test_header_blocks_that_never_end(start):
    """Bytes of a block wait on every connection: they are bounded together, and not for ever."""
    server = start()
    before = server.status()["VmRSS"]
    with contextlib.ExitStack() as stack:
        peers = [stack.enter_context(Peer(server.address, source=SOURCE)) for _ in range(200)]
        for peer in peers:
            with contextlib.suppress(OSError):
                peer.send(frame(HEADERS, 0, peer.next_stream(), request_headers() + literal("x", "y" * 60000)[:16000]))
                peer.send(frame(CONTINUATION, 0, peer.stream, b"y" * 16000))
        time.sleep(1)
        grown = server.status()["VmRSS"] - before
        assert grown < 200 * 80, f"{grown / 200} KiB a connection"
        reasons = ("headers", "unread")  # for one, or for all of them together

        def ended():
            metrics = server.metrics()
            return sum(metrics[f'quantd_connections_ended_total{{reason="{reason}"}}'] for reason in reasons)

        wait_for(lambda: ended() >= 200, 15, "they are closed")


@pytest.mark.parametrize("value", ["Bearer x ", " Bearer x", "Bearer x\t", " ", ""])
def test_white_space_around_metadata_is_stripped(server, value):
    with Peer(server.address) as peer:
        stream = peer.next_stream()
        headers = request_headers(extra=[("authorization", value), ("x-anything", value), ("x-request-id", value)])
        peer.send(frame(HEADERS, END_HEADERS, stream, headers) + frame(DATA, END_STREAM, stream, SMALL))
        assert peer.ended(stream)
        assert peer.headers[stream]["grpc-status"] == "0"
