"""HTTP/2 by hand, for peers that gRPC's own clients cannot be: hostile, slow, rude. Plain frames; headers without
compression or tables."""

import socket
import struct
import time

import hpack

DATA, HEADERS, PRIORITY, RST_STREAM, SETTINGS, PUSH_PROMISE, PING, GOAWAY, WINDOW_UPDATE, CONTINUATION = range(10)
END_STREAM, ACK, END_HEADERS, PADDED = 1, 1, 4, 8
MAX_CONCURRENT_STREAMS, INITIAL_WINDOW_SIZE, MAX_FRAME_SIZE = 3, 4, 5
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
SERVICE = "/quantd.v1.QuantizationService/"


def frame(kind, flags, stream, payload=b""):
    return struct.pack(">I", len(payload))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + payload


def integer(value, prefix_bits, first=0):
    """An integer in HPACK's encoding."""
    limit = (1 << prefix_bits) - 1
    if value < limit:
        return bytes([first | value])
    out = [first | limit]
    value -= limit
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def literal(name, value):
    """A header without indexing."""
    name, value = name.encode(), value.encode() if isinstance(value, str) else value
    return b"\x00" + integer(len(name), 7) + name + integer(len(value), 7) + value


def request_headers(method="DynamicQuantize", extra=(), path=None):
    fields = [
        (":method", "POST"), (":scheme", "http"), (":path", path or SERVICE + method), (":authority", "test"),
        ("te", "trailers"), ("content-type", "application/grpc"), *extra,
    ]
    return b"".join(literal(name, value) for name, value in fields)


def message(payload):
    """gRPC's prefix, then the message."""
    return b"\x00" + struct.pack(">I", len(payload)) + payload


def settings(**values):
    numbers = {"window": INITIAL_WINDOW_SIZE, "frame": MAX_FRAME_SIZE, "streams": MAX_CONCURRENT_STREAMS}
    return b"".join(struct.pack(">HI", numbers[name], value) for name, value in values.items())


class Peer:
    """A connection. It does nothing by itself: not even SETTINGS are acknowledged unless `polite`."""

    def __init__(self, address, polite=True, timeout=20, receive_buffer=None, source=None, tls=None, **initial_settings):
        host, port = address.rsplit(":", 1)
        self.socket = socket.socket()
        if receive_buffer:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        self.socket.settimeout(timeout)
        if source:
            self.socket.bind((source, 0))
        self.socket.connect((host, int(port)))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if tls:
            self.socket = tls.wrap_socket(self.socket, server_hostname="localhost")
        self.buffer = b""
        self.stream = -1
        self.decoder = hpack.Decoder()
        self.headers = {}  # of each stream, including trailers
        self.initial_window = 65535  # what the server lets a stream send at first
        self.windows = {}  # what it has let each stream send in addition
        self.data = {}  # what arrived on each stream
        self.over = {}  # streams that have ended: whether successfully
        self.send(PREFACE + frame(SETTINGS, 0, 0, settings(**initial_settings)))
        if polite:
            self.send(frame(SETTINGS, ACK, 0))
            self.send(frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", (1 << 31) - 65536)))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def next_stream(self):
        self.stream += 2
        return self.stream

    def open(self, method="DynamicQuantize", extra=()):
        """Sends a call's headers; returns its stream."""
        stream = self.next_stream()
        self.send(frame(HEADERS, END_HEADERS, stream, request_headers(method, extra)))
        return stream

    def call(self, payload, method="DynamicQuantize"):
        """Sends a whole call with a small message; returns its stream."""
        stream = self.next_stream()
        self.send(
            frame(HEADERS, END_HEADERS, stream, request_headers(method))
            + frame(DATA, END_STREAM, stream, message(payload))
        )
        return stream

    def upload(self, payload, method="DynamicQuantize"):
        """Sends a whole call with a message of any size, as the server's windows allow; returns its stream."""
        stream = self.open(method)
        self.upload_on(stream, message(payload))
        return stream

    def upload_on(self, stream, data, ends=True):
        """Sends bytes of messages, as the server's windows allow, and the end of the stream if it `ends`."""
        sent = 0
        while sent < len(data):
            room = self.initial_window + self.windows.get(stream, 0) - sent
            if room <= 0:
                assert self.read_frame(), "the server closed"
                continue
            size = min(room, 16384, len(data) - sent)
            end = END_STREAM if ends and sent + size == len(data) else 0
            self.send(frame(DATA, end, stream, data[sent : sent + size]))
            sent += size

    def read_frame(self):
        """(kind, flags, stream, payload), or None when the server has closed."""
        while True:
            if len(self.buffer) >= 9:
                length = int.from_bytes(self.buffer[:3], "big")
                if len(self.buffer) >= 9 + length:
                    head, payload = self.buffer[:9], self.buffer[9 : 9 + length]
                    self.buffer = self.buffer[9 + length :]
                    stream = int.from_bytes(head[5:9], "big") & 0x7FFFFFFF
                    if head[3] == WINDOW_UPDATE:
                        self.windows[stream] = self.windows.get(stream, 0) + int.from_bytes(payload, "big")
                    if head[3] == SETTINGS:
                        for at in range(0, len(payload), 6):
                            number, value = struct.unpack(">HI", payload[at : at + 6])
                            if number == INITIAL_WINDOW_SIZE:
                                self.initial_window = value
                    if head[3] == DATA:
                        self.data[stream] = self.data.get(stream, b"") + payload
                    if head[3] in (DATA, HEADERS) and head[4] & END_STREAM:
                        self.over.setdefault(stream, True)
                    if head[3] == RST_STREAM:
                        self.over.setdefault(stream, False)
                    if head[3] == HEADERS:
                        self.headers.setdefault(stream, {}).update(self.decoder.decode(payload))
                    return head[3], head[4], stream, payload
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionError:
                return None
            if not data:
                return None
            self.buffer += data

    def until(self, kind, stream=None, seconds=20):
        """The next frame of a kind (of a stream); None when the server closes first."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            got = self.read_frame()
            if got is None or (got[0] == kind and stream in (None, got[2])):
                return got
        raise AssertionError(f"no frame of kind {kind} within {seconds} s")

    def ended(self, stream, seconds=20):
        """Reads until the stream is over: its DATA, or None if it was reset or the server closed."""
        deadline = time.monotonic() + seconds
        while stream not in self.over:
            assert time.monotonic() < deadline, f"stream {stream} did not end within {seconds} s"
            if self.read_frame() is None:
                return None
        data = self.data.pop(stream, b"")
        return data if self.over[stream] else None

    def closed(self, seconds=20):
        """Whether the server closes the connection within that time."""
        self.socket.settimeout(seconds)
        try:
            while self.socket.recv(1 << 16):
                pass
        except ConnectionError:
            return True
        except TimeoutError:
            return False
        return True
