"""HTTP/2's frames and the states that a stream can be in, as two tables; every frame can be sent in every state (`attack`).

A state defines what is sent before the frame, for each stream again; a frame is made for a stream. To add one, add a row:
tests/e2e/test_ledger.py tests all rows."""

import dataclasses
import struct

from attack_table import SMALL, UNKNOWN, WATCH, Repeated, reset, whole
from attackers import Attack
from http2 import (
    ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, GOAWAY, HEADERS, PADDED, PING, PRIORITY, PUSH_PROMISE, RST_STREAM, SETTINGS, SERVICE,
    WINDOW_UPDATE, frame, integer, literal, message, request_headers, settings,
)

PRIORITY_FLAG = 0x20
ALTSVC, ORIGIN, PRIORITY_UPDATE, UNASSIGNED = 0xA, 0xC, 0x10, 0xBE
UNITS = 20  # streams in one send
PARTS = 5  # frames, when nobody reads: the kernel's buffers must be full before the server's own memory grows


def number(value):
    return struct.pack(">I", value)


@dataclasses.dataclass
class Frame:
    name: str
    kind: int
    flags: int = 0
    payload: object = b""  # or a function of the stream
    cut: bool = False  # its head promises one byte more than it has

    @property
    def times(self):
        """How many times it is sent on a stream."""
        return 1 if self.cut or not callable(self.payload) and len(self.payload) > 1000 else 3

    def of(self, stream):
        payload = self.payload(stream) if callable(self.payload) else self.payload
        if self.cut:
            whole_frame = frame(self.kind, self.flags, stream, payload + b"\0")
            return whole_frame[:-1]
        return frame(self.kind, self.flags, stream, payload)


REQUEST = request_headers()
FRAMES = [
    Frame("DATA empty", DATA),
    Frame("DATA of a byte", DATA, 0, b"\0"),
    Frame("DATA of 16 KiB", DATA, 0, bytes(16384)),
    Frame("DATA padded", DATA, PADDED, b"\xff" + bytes(255)),
    Frame("DATA with more padding than bytes", DATA, PADDED, b"\xff"),
    Frame("DATA that ends", DATA, END_STREAM),
    Frame("DATA with a message", DATA, END_STREAM, message(SMALL)),
    Frame("DATA with a length of 4 GiB", DATA, 0, b"\0\xff\xff\xff\xff"),
    Frame("DATA over the frame size", DATA, 0, bytes(140_000)),
    Frame("HEADERS of a call", HEADERS, END_HEADERS, REQUEST),
    Frame("HEADERS of a call that ends", HEADERS, END_HEADERS | END_STREAM, REQUEST),
    Frame("HEADERS of an unknown path", HEADERS, END_HEADERS | END_STREAM, request_headers(path=UNKNOWN)),
    Frame("HEADERS that end a stream", HEADERS, END_HEADERS | END_STREAM, literal("a", "b")),
    Frame("HEADERS that end nothing", HEADERS, END_HEADERS, literal("a", "b")),
    Frame("HEADERS empty", HEADERS, END_HEADERS),
    Frame("HEADERS with a priority", HEADERS, END_HEADERS | PRIORITY_FLAG, number(0) + b"\x10" + REQUEST),
    Frame("HEADERS that depend on themselves", HEADERS, END_HEADERS | PRIORITY_FLAG, lambda stream: number(stream) + b"\x10" + REQUEST),
    Frame("HEADERS padded", HEADERS, END_HEADERS | PADDED, b"\xff" + REQUEST + bytes(255)),
    Frame("HEADERS unfinished", HEADERS, 0, REQUEST),
    Frame("HEADERS of 15 KiB", HEADERS, END_HEADERS, REQUEST + literal("a", "b" * 15000)),
    Frame("HEADERS over the limit", HEADERS, END_HEADERS, REQUEST + literal("a", "b" * 60000)),
    Frame("HEADERS with an index that is none", HEADERS, END_HEADERS, REQUEST + b"\xff\x80\x7f"),
    Frame("HEADERS with an endless integer", HEADERS, END_HEADERS, b"\x00\x7f" + b"\xff" * 20),
    Frame("HEADERS with a forbidden field", HEADERS, END_HEADERS, REQUEST + literal("connection", "close")),
    Frame("HEADERS with upper case", HEADERS, END_HEADERS, REQUEST + literal("A", "b")),
    Frame("HEADERS with two paths", HEADERS, END_HEADERS, request_headers(extra=[(":path", "/a")])),
    Frame("HEADERS with content-length", HEADERS, END_HEADERS, REQUEST + literal("content-length", "1")),
    Frame("HEADERS that make a bomb", HEADERS, END_HEADERS, REQUEST + b"\x40\x01x\x7f\x81\x1d" + b"y" * 3840 + b"\xbe" * 2000),
    Frame("HEADERS that change the table", HEADERS, END_HEADERS, b"\x20\x3f\xe1\x1f" + REQUEST),
    Frame("PRIORITY", PRIORITY, 0, number(0) + b"\x10"),
    Frame("PRIORITY on a later stream", PRIORITY, 0, lambda stream: number(stream + 100 | 1 << 31) + b"\xff"),
    Frame("PRIORITY on itself", PRIORITY, 0, lambda stream: number(stream) + b"\x10"),
    Frame("PRIORITY short", PRIORITY, 0, bytes(4)),
    Frame("RST_STREAM", RST_STREAM, 0, number(8)),
    Frame("RST_STREAM with an unknown reason", RST_STREAM, 0, number(0xFFFFFFFF)),
    Frame("RST_STREAM short", RST_STREAM, 0, bytes(3)),
    Frame("SETTINGS empty", SETTINGS),
    Frame("SETTINGS acknowledged", SETTINGS, ACK),
    Frame("SETTINGS acknowledged with bytes", SETTINGS, ACK, settings(window=1)),
    Frame("SETTINGS with windows of nothing", SETTINGS, 0, settings(window=0)),
    Frame("SETTINGS with windows of 2 GiB", SETTINGS, 0, settings(window=(1 << 31) - 1)),
    Frame("SETTINGS with windows of more", SETTINGS, 0, settings(window=1 << 31)),
    Frame("SETTINGS with windows that change", SETTINGS, 0, settings(window=0) + settings(window=65535) + settings(window=1)),
    Frame("SETTINGS with tables that change", SETTINGS, 0, struct.pack(">HIHI", 1, 0, 1, 1 << 30)),
    Frame("SETTINGS with a frame size of nothing", SETTINGS, 0, settings(frame=0)),
    Frame("SETTINGS with the largest frames", SETTINGS, 0, settings(frame=(1 << 24) - 1)),
    Frame("SETTINGS of 32 unknown", SETTINGS, 0, struct.pack(">HI", 0xF0F0, 1) * 32),
    Frame("SETTINGS of 1000 unknown", SETTINGS, 0, struct.pack(">HI", 0xF0F0, 1) * 1000),
    Frame("SETTINGS short", SETTINGS, 0, bytes(5)),
    Frame("PUSH_PROMISE", PUSH_PROMISE, END_HEADERS, number(2) + REQUEST),
    Frame("PING", PING, 0, bytes(8)),
    Frame("PING acknowledged", PING, ACK, bytes(8)),
    Frame("PING short", PING, 0, bytes(7)),
    Frame("GOAWAY", GOAWAY, 0, bytes(8)),
    Frame("GOAWAY with 10 KiB of reasons", GOAWAY, 0, bytes(8 + 10240)),
    Frame("GOAWAY short", GOAWAY, 0, bytes(7)),
    Frame("WINDOW_UPDATE of 1", WINDOW_UPDATE, 0, number(1)),
    Frame("WINDOW_UPDATE of nothing", WINDOW_UPDATE, 0, number(0)),
    Frame("WINDOW_UPDATE of 2 GiB", WINDOW_UPDATE, 0, number((1 << 31) - 1)),
    Frame("WINDOW_UPDATE short", WINDOW_UPDATE, 0, bytes(3)),
    Frame("CONTINUATION empty", CONTINUATION),
    Frame("CONTINUATION that ends", CONTINUATION, END_HEADERS, literal("a", "b")),
    Frame("CONTINUATION of 16 KiB", CONTINUATION, 0, literal("a", "b" * 16000)),
    Frame("ALTSVC", ALTSVC, 0, b"\0\x01a" + b"b" * 100),
    Frame("ORIGIN", ORIGIN, 0, b"\0\x01a"),
    Frame("PRIORITY_UPDATE", PRIORITY_UPDATE, 0, lambda stream: number(stream or 1) + b"u=7, i"),
    Frame("PRIORITY_UPDATE of 4 KiB", PRIORITY_UPDATE, 0, lambda stream: number(stream or 1) + b"u=7, " * 800),
    Frame("an unassigned one", UNASSIGNED, 0xFF, bytes(9)),
    Frame("an unassigned one of 16 KiB", UNASSIGNED, 0, bytes(16384)),
    Frame("a frame without its end", DATA, 0, bytes(10), cut=True),
]


def short_head(path, content_type):
    """As short as possible without HPACK's table, which frames may change."""
    pseudo = b"\x83\x86\x04" + integer(len(path), 7) + path.encode() + b"\x01\x01a"
    return pseudo + integer(31, 4) + integer(len(content_type), 7) + content_type.encode() + literal("te", "trailers")


def opened(stream, path=SERVICE + "DynamicQuantize", flags=END_HEADERS, content_type="application/grpc"):
    return frame(HEADERS, flags, stream, short_head(path, content_type))


@dataclasses.dataclass
class State:
    name: str
    before: object = lambda stream: b""  # sent to bring a stream into the state
    target: object = None  # the stream on which the frame is sent, if it is another one
    after: object = lambda stream: b""  # sent to make room for the next one
    once: bytes = b""  # sent at the start of the connection
    settings: dict = dataclasses.field(default_factory=dict)
    says: str = ""  # the server's answer on the stream so far: its :status and grpc-status, or its reset


STATES = [
    State("no stream", target=lambda stream: 0),
    State("idle"),
    State("idle, of the server's", target=lambda stream: 2),
    State("its block is unfinished", lambda stream: opened(stream, flags=0), after=reset),
    State("open", opened, after=reset),
    State("open, in a length", lambda stream: opened(stream) + frame(DATA, 0, stream, bytes(3)), after=reset),
    State("open, in a message", lambda stream: opened(stream) + frame(DATA, 0, stream, message(bytes(1000))[:100]), after=reset),
    State("open, a Stream's", lambda stream: opened(stream, SERVICE + "Stream"), after=reset),
    State("answered while open", lambda stream: opened(stream) + frame(DATA, 0, stream, message(SMALL)), after=reset, says="200 0 reset 0"),
    State("half closed", lambda stream: opened(stream) + whole(stream), says="200 0"),
    State("half closed, window 0", lambda stream: opened(stream) + whole(stream), after=reset, settings={"window": 0}, says="200"),
    State("half closed, a Watch", lambda stream: opened(stream, WATCH) + whole(stream, b""), after=reset, says="200"),
    State("refused", lambda stream: opened(stream, UNKNOWN, END_HEADERS | END_STREAM), says="200 12"),
    State("refused while open", lambda stream: opened(stream, UNKNOWN), says="200 12 reset 0"),
    State("not gRPC", lambda stream: opened(stream, content_type="text/plain"), says="415 reset 0"),
    State("over the limit of streams", lambda stream: opened(stream)),
    State("reset", lambda stream: opened(stream) + reset(stream)),
    State("reset after a whole call", lambda stream: opened(stream) + whole(stream) + reset(stream)),
    State("passed over", lambda stream: opened(stream) + reset(stream), target=lambda stream: max(stream - 4, 1)),
    State("after GOAWAY", opened, after=reset, once=frame(GOAWAY, 0, 0, bytes(8))),
    State("after an error", opened, once=frame(WINDOW_UPDATE, 0, 0, number(0))),
]


def units(state, sent):
    """One send, for the streams from 1 on."""

    def unit(stream):
        target = stream if state.target is None else state.target(stream)
        return state.before(stream) + sent.of(target) * sent.times + state.after(stream)

    return unit


def pair(sender, state, sent):
    """A frame in a state, repeatedly."""
    unit = units(state, sent)
    yield state.once + unit(sender.next_stream())
    # Streams whose number is also in a payload, or whose frames are malformed, are made one by one.
    if callable(sent.payload) or sent.cut or state.target is not None:
        while True:
            yield b"".join(unit(sender.next_stream()) for _ in range(UNITS))
    repeated = Repeated(unit, UNITS)
    while True:
        begin = sender.stream + 2
        sender.stream += 2 * UNITS
        yield repeated.of(begin)


def attack(state, reads, part="all"):
    """The frames of a part (0 to PARTS - 1; or "all", or only the one with the number after a "#") in a state, by the state's number: a
    connection for each."""
    rows = of_part(part)
    # When nobody reads, the frames that do not end their connection get most of the time.
    return Attack(
        lambda sender: pair(sender, STATES[state], rows[sender.number]), len(rows), reads, STATES[state].settings,
        reconnects=30 if reads else 2,
    )


def of_part(part):
    if part.startswith("#"):
        return [FRAMES[int(part[1:])]]
    return FRAMES if part == "all" else FRAMES[int(part) :: PARTS]
