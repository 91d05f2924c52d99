"""Peers that send and never read: memory, a bystander's p99 and the connection's end stay within their bounds."""

import contextlib
import struct
import time

import pytest

from bystander import Bystander
from http2 import (
    DATA, END_HEADERS, END_STREAM, HEADERS, PING, RST_STREAM, SETTINGS, Peer, frame, message, request_headers,
    settings,
)
from support import pb, rounds, tensor, wait_for

pytestmark = pytest.mark.gate

SMALL = message(pb.DynamicQuantizeRequest(x=tensor([1.0, 2.0])).SerializeToString())
CANCEL = struct.pack(">I", 8)
SOURCE = "127.0.0.2"  # the attackers' address: the bystander is another peer


def calls(path=None, extra=(), body=SMALL, reset=False, count=20_000):
    """`calls` complete calls on the streams 1, 3, 5 and so on, each reset at once with `reset`; of long ones 8 MiB."""
    headers = request_headers(path=path, extra=extra)
    data = bytearray()
    for stream in range(1, 2 * count, 2):
        data += frame(HEADERS, END_HEADERS, stream, headers) + frame(DATA, END_STREAM, stream, body)
        data += frame(RST_STREAM, 0, stream, CANCEL) if reset else b""
        if len(data) > 8 << 20:
            break
    return bytes(data)


# Made before anything is sent, so that even on a busy machine a flood is as fast as the server reads it.
ATTACKS = {
    "unknown path": lambda: calls(path="/no.such/Method"),
    "unknown path of 4 KiB": lambda: calls(path="/" + "x" * 4000),
    "compressed": lambda: calls(extra=[("grpc-encoding", "zstd")]),
    "answered": lambda: calls(path="/grpc.health.v1.Health/Check"),
    "answered and reset": lambda: calls(path="/grpc.health.v1.Health/Check", reset=True),
    "computed": lambda: calls(),
    "computed and reset": lambda: calls(reset=True),
    "refused and reset": lambda: calls(path="/no.such/Method", reset=True),
    "pings": lambda: frame(PING, 0, 0, b"12345678") * 100_000,
    "settings": lambda: frame(SETTINGS, 0, 0, settings(window=65535)) * 100_000,
}


class Flood:
    """A peer that sends `data` as long as the server takes it, and reads nothing."""

    def __init__(self, peer, data):
        self.peer, self.data, self.sent = peer, memoryview(data), 0
        peer.socket.settimeout(0.05)

    def go_on(self):
        """Sends for a short time. False: the server has ended the connection, or everything is sent."""
        end = time.monotonic() + 0.05
        while time.monotonic() < end and self.sent < len(self.data):
            try:
                self.sent += self.peer.socket.send(self.data[self.sent : self.sent + (1 << 16)])
            except TimeoutError:
                pass  # the server stops reading: that is its answer
            except OSError:
                return False
        return self.sent < len(self.data)


@pytest.mark.parametrize("connections", [1, 16])
@pytest.mark.parametrize("name", ATTACKS)
def test_what_nobody_reads_is_bounded(start, name, connections):
    """It is not read, and closed after --stall_timeout with a reason that is counted."""
    server = start("--stall_timeout=1s")

    def held_back():
        """How many connections were slowed down for many useless frames, or not read any more and then closed."""
        metrics = server.metrics()
        reasons = ("unread", "protocol_error")  # nghttp2 ends floods of acknowledgements with the latter
        counted = sum(metrics[f'quantd_connections_ended_total{{reason="{reason}"}}'] for reason in reasons)
        return counted + metrics["quantd_connections_throttled_total"]

    data = ATTACKS[name]()
    with Bystander(server) as bystander, contextlib.ExitStack() as stack:
        floods = [
            Flood(stack.enter_context(Peer(server.address, source=SOURCE, receive_buffer=4096, window=(1 << 31) - 1)), data)
            for _ in range(connections)
        ]
        for _ in rounds(4, lambda: held_back() >= connections):
            floods = [flood for flood in floods if flood.go_on()]
            time.sleep(0 if floods else 0.05)
    bystander.unharmed(memory_mib=48, p99_seconds=2)
    assert held_back() >= connections
    wait_for(lambda: server.metrics()["quantd_calls"] == 0, 10, "nothing is left of the attack")


def test_one_that_reads_again_is_served(server):
    """It may be left unread for a while, but is not closed if it reads its responses in time."""
    path = "/grpc.health.v1.Health/Check"
    with Peer(server.address, receive_buffer=1 << 16, window=(1 << 31) - 1) as peer:
        peer.socket.settimeout(0.2)
        data = calls(path=path, body=message(b""), reset=True, count=8000)
        while data:
            try:
                data = data[peer.socket.send(data[: 1 << 16]) :]
            except TimeoutError:
                with contextlib.suppress(TimeoutError):
                    peer.read_frame()
        peer.socket.settimeout(20)
        answered = 2 * 8000 + 1
        peer.send(frame(HEADERS, END_HEADERS, answered, request_headers(path=path)) + frame(DATA, END_STREAM, answered, message(b"")))
        assert peer.ended(answered) == message(b"\x08\x01")
