"""Clients that take what others need and then stand still: each beside an honest client, from an address of its own or from theirs. A place in a full
table belongs to a call that moves (server/scheduling/places.h): the honest client is refused for --stall_timeout at most, and served from then on."""

import contextlib
import socket
import struct
import threading
import time

import grpc
import pytest

from attack_table import AGAIN, CANCEL, SMALL, first_of, in_frames, varint
from http2 import DATA, END_HEADERS, END_STREAM, HEADERS, PREFACE, RST_STREAM, SERVICE, SETTINGS, Peer, frame, message, settings
from support import pb_grpc, quantize, wait_for

pytestmark = pytest.mark.gate

STALL = 1.0
SECONDS = 4.0  # of each attack


def calls(count, body, method="DynamicQuantize", begin=1):
    """`count` calls on the streams `begin`, `begin` + 2 and so on."""
    first = first_of(SERVICE + method)
    streams = range(begin, begin + 2 * count, 2)
    return b"".join(frame(HEADERS, END_HEADERS, s, first if s == 1 else AGAIN) + body(s) for s in streams)


def whole(stream):
    return frame(DATA, END_STREAM, stream, message(SMALL))


def part_of(size, sent):
    """The first bytes of a message of `size` bytes."""
    def body(stream):
        left, out = sent, []
        while left > 0:
            out.append(frame(DATA, 0, stream, (message(b"")[:1] + struct.pack(">I", size) + bytes(left))[: min(left, 16384)]
                             if not out else bytes(min(left, 16384))))
            left -= 16384
        return b"".join(out)
    return body


# Per attack: connections, addresses, streams a connection, what each call sends, the window for its answers.
ATTACKS = {
    "calls_of_nothing": (36, 2, 100, lambda s: b"", 65535),
    "calls_of_a_byte": (36, 2, 100, lambda s: frame(DATA, 0, s, b"\0"), 65535),
    "calls_of_five_bytes": (36, 2, 100, lambda s: frame(DATA, 0, s, b"\0\0\0\0\x40"), 65535),
    "first_windows": (40, 2, 100, lambda s: frame(DATA, 0, s, b"\0\0\x04\0\0"), 65535),
    "windows_of_zero": (36, 2, 100, whole, 0),
    "answers_in_memory": (12, 1, 100, lambda s: b"".join(in_frames(s, dequantize_of(17_000))), 0, "Dequantize"),
}


class Standing:
    """Opens the connections and sends; then stands still, or resets all calls every `again` seconds and begins as many."""

    def __init__(self, server, name, source, again=None):
        self.server, self.source, self.again = server, source, again
        self.connections, self.addresses, self.streams, self.body, self.window, *self.method = ATTACKS[name]
        self.stop = threading.Event()
        self.thread = threading.Thread(target=self.run)

    def run(self):
        host, port = self.server.address.rsplit(":", 1)
        data = PREFACE + frame(SETTINGS, 0, 0, settings(window=self.window)) + calls(self.streams, self.body, *self.method)
        self.sockets = []
        for number in range(self.connections):
            peer = socket.socket()
            peer.bind((f"127.0.0.{self.source + number % self.addresses}", 0))
            peer.settimeout(5)
            peer.connect((host, int(port)))
            self.sockets.append(peer)
        left = {peer: data for peer in self.sockets}
        begin, at = 1, time.monotonic()
        while not self.stop.wait(0.01):
            if self.again and not left and time.monotonic() > at + self.again:
                resets = b"".join(frame(RST_STREAM, 0, s, CANCEL) for s in range(begin, begin + 2 * self.streams, 2))
                begin, at = begin + 2 * self.streams, time.monotonic()
                left = dict.fromkeys(self.sockets, resets + calls(self.streams, self.body, *self.method, begin=begin))
            for peer in list(left):
                try:
                    peer.setblocking(False)
                    left[peer] = left[peer][peer.send(left[peer][: 1 << 20]) :]
                except BlockingIOError:
                    pass
                except OSError:
                    left[peer] = b""
                if not left[peer]:
                    del left[peer]

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()
        for peer in self.sockets:
            peer.close()


class Honest:
    """A small call every 5 ms, or a large one every 100 ms."""

    def __init__(self, server, elements=2, pause=0.005):
        self.stub = pb_grpc.QuantizationServiceStub(server.channel())
        self.elements, self.pause, self.calls = elements, pause, []

    def during(self, seconds):
        request = quantize([1.0] * self.elements)
        begin = time.monotonic()
        while (at := time.monotonic() - begin) < seconds:
            try:
                self.stub.Quantize(request, timeout=15)
                failed = None
            except grpc.RpcError as error:
                failed = f"{error.code().name}: {error.details()}"
            self.calls.append((at, time.monotonic() - begin - at, failed))
            time.sleep(self.pause)

    def after(self, seconds):
        later = [call for call in self.calls if call[0] >= seconds]
        assert later
        return later

    def say(self, name):
        good = sorted(seconds for _, seconds, failed in self.calls if failed is None)
        failed = [at for at, _, failure in self.calls if failure]
        p99 = 1e3 * good[int(len(good) * 0.99)] if good else float("nan")
        refused = f"{len(failed)} refused (the last after {max(failed, default=0):.1f} s)"
        print(f"{name}: {len(self.calls)} calls, {refused}, p99 {p99:.1f} ms, at most {max(good, default=0):.2f} s")


@pytest.mark.parametrize("source", [2, 1], ids=["others", "own_address"])
@pytest.mark.parametrize("name", ATTACKS)
def test_who_stands_still_loses_its_place(start, name, source):
    if source == 1 and name == "answers_in_memory":
        pytest.skip("one peer's share of memory is its own")
    server = start(f"--stall_timeout={STALL}s", "--max_connections=64")
    honest = Honest(server)
    honest.stub.Quantize(quantize([1.0]), timeout=10)
    with Standing(server, name, source):
        honest.during(SECONDS)
    honest.say(name)
    later = honest.after(2 * STALL)
    refused = [failed for _, _, failed in later if failed]
    assert not refused, f"{len(refused)} of {len(later)}: {refused[:2]}"
    assert max(seconds for _, seconds, _ in honest.calls) < 0.4 * STALL, "nobody waits for those who stand still"
    wait_for(lambda: server.metrics()["quantd_calls"] == 0, 10, "nothing is left of the attack")


@pytest.mark.parametrize("name, source", [("calls_of_nothing", 2), ("calls_of_nothing", 1), ("windows_of_zero", 2)])
def test_who_begins_again_and_again_leaves_room(start, name, source):
    """No call stands still for long enough to lose its place."""
    server = start(f"--stall_timeout={STALL}s", "--max_connections=64")
    honest = Honest(server)
    honest.stub.Quantize(quantize([1.0]), timeout=10)
    with Standing(server, name, source, again=0.3):
        honest.during(SECONDS)
    honest.say(name)
    refused = [failed for _, _, failed in honest.calls if failed]
    assert len(refused) < len(honest.calls) / 100, f"{len(refused)} of {len(honest.calls)}: {refused[:2]}"


def test_memory_is_counted_as_it_is_taken(start):
    """Messages of one byte more than each size of buffer, of which the last byte does not come; and answers that nobody reads."""
    server = start("--stall_timeout=60s", "--memory_budget_bytes=536870912", "--receive_budget_bytes=536870912")
    for _ in range(3):
        server.stub.Quantize(quantize([1.0] * 1000), timeout=10)
    idle = server.resident_bytes()
    sizes = [(4 + step) << shift for shift in range(16, 22) for step in range(4)]
    with contextlib.ExitStack() as stack:
        for number in range(3):
            sender = stack.enter_context(Peer(server.address, source=f"127.0.0.{2 + number}"))
            for size in sizes:
                sender.upload_on(sender.open(), message(bytes(size + 1))[:-1], ends=False)
        unread = stack.enter_context(Peer(server.address, source="127.0.0.9", window=0))
        for size in sizes:
            unread.upload_on(unread.open("Dequantize"), message(dequantize_of(size // 4)))
        wait_for(lambda: server.metrics()["quantd_inflight_requests"] == 0, 20, "computed")
        metrics = server.metrics()
        account = metrics["quantd_receiving_bytes"] + metrics["quantd_inflight_bytes"]
        taken = server.resident_bytes() - idle - metrics["quantd_pool_bytes"]
        print(f"account {account / 2**20:.0f} MiB, resident {taken / 2**20:.0f} MiB")
        assert account > 256 << 20
        assert taken < 1.05 * account + (4 << 20)


def test_memory_of_many_calls_is_counted_as_it_is_taken(start):
    """The state of 2,100 calls whose answers of 66 KiB nobody reads is in no part; it is small."""
    server = start("--stall_timeout=60s", "--memory_budget_bytes=1073741824", "--receive_budget_bytes=536870912")
    for _ in range(3):
        server.stub.Quantize(quantize([1.0] * 1000), timeout=10)
    idle, kernels = server.resident_bytes(), 'quantd_kernel_seconds_count{operation="dequantize"}'
    ATTACKS["answers"] = (21, 3, 100, ATTACKS["answers_in_memory"][3], 0, "Dequantize")
    with Standing(server, "answers", 2):
        wait_for(lambda: server.metrics()[kernels] == 2100, 30, "computed")
        metrics = server.metrics()
        account, taken = metrics["quantd_inflight_bytes"], server.resident_bytes() - idle - metrics["quantd_pool_bytes"]
        print(f"account {account / 2**20:.0f} MiB, resident {taken / 2**20:.0f} MiB")
        assert account > 2100 * 66 << 10
        assert taken < 1.05 * account


def dequantize_of(elements):
    """A DequantizeRequest of UINT8."""
    x = b"\x08\x02\x12" + varint(len(varint(elements))) + varint(elements) + b"\x1a" + varint(elements) + bytes(elements)
    scale = b"\x08\x01\x1a\x04" + struct.pack("<f", 0.5)
    return b"\x0a" + varint(len(x)) + x + b"\x12" + varint(len(scale)) + scale


def test_halves_of_uploads_leave_room_for_a_whole_one(start):
    server = start(f"--stall_timeout={STALL}s", "--receive_budget_bytes=268435456")
    half = part_of(16 << 20, 8 << 20)
    honest = Honest(server, elements=4 << 20, pause=0.1)
    ATTACKS["halves"] = (8, 1, 8, half, 65535)
    with Standing(server, "halves", 2):
        time.sleep(0.5)
        honest.during(SECONDS)
    honest.say("halves of uploads")
    assert not [failed for _, _, failed in honest.calls if failed]
    assert max(seconds for _, seconds, _ in honest.calls) < 3 * STALL


def test_a_crowd_on_the_http_port_displaces_its_own(start):
    """The connection that came first, from another address, is answered beside more than there is room for."""
    host, port = (server := start()).http.rsplit(":", 1)

    def connect(source):
        peer = stack.enter_context(socket.socket())
        peer.bind((source, 0))
        peer.settimeout(5)
        peer.connect((host, int(port)))
        return peer

    with contextlib.ExitStack() as stack:
        probe = connect("127.0.0.3")
        probe.send(b"GET /livez HT")
        for _ in range(600):
            connect("127.0.0.2")
        probe.send(b"TP/1.1\r\nHost: a\r\n\r\n")
        assert probe.recv(100).startswith(b"HTTP/1.1 200")
    assert server.get("/livez")[0] == 200
