"""Hostile peers of the TLS port: they lose their own connection, and no other client loses a call."""

import os
import random
import socket
import ssl
import struct
import threading
import time

import numpy as np
import pytest

from http2 import DATA, END_HEADERS, END_STREAM, HEADERS, WINDOW_UPDATE, Peer, frame, message, request_headers
from support import SANITIZED, pb, quantize, tensor, wait_for
from tls import files, start_tls  # noqa: F401

pytestmark = pytest.mark.gate


class Calls:
    """A client that calls all the time over one connection."""

    def __init__(self, stub):
        self.stub, self.times, self.failures, self.ended = stub, [], [], threading.Event()
        self.thread = threading.Thread(target=self._run)
        self.thread.start()
        # Connected before the attack: a new connection from the attacker's address may be refused.
        wait_for(lambda: self.failures or self.times, 30, "a first call")

    def _run(self):
        while not self.ended.is_set():
            began = time.monotonic()
            try:
                self.stub.Quantize(quantize([1.0, 2.0]), timeout=20)
            except Exception as error:  # noqa: BLE001
                self.failures.append(error)
            self.times.append(time.monotonic() - began)
            time.sleep(0.002)

    def stop(self):
        wait_for(lambda: self.failures or len(self.times) > 10, 60, "calls")  # an attack may end before the first one does
        self.ended.set()
        self.thread.join()
        assert self.failures == []
        return self.times


def hello(context):
    """A client's first bytes."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    session = context.wrap_bio(incoming, outgoing, server_hostname="localhost")
    with pytest.raises(ssl.SSLWantReadError):
        session.do_handshake()
    return outgoing.read()


def test_a_thousand_half_handshakes(files, start_tls):  # noqa: F811
    """They get the server's whole flight, and send nothing more: honest calls go on, and memory is bounded."""
    server = start_tls(files, *files.flags, "--max_connections=1500")
    first = hello(files.context(check=False))
    calls = Calls(server.stub)
    wait_for(lambda: len(calls.times) > 20, 30, "calls")
    before = server.status()["VmRSS"]
    halves = []
    for _ in range(1000):
        connection = server.raw()
        connection.sendall(first)
        halves.append(connection)
    wait_for(lambda: server.metrics()["quantd_connections"] >= 900, 30, "they are there")
    grown = server.status()["VmRSS"] - before
    assert SANITIZED or grown < 1000 * (64 + 28) * 1.25, f"{grown} KiB"
    # None of them is left when the time for a handshake is over.
    wait_for(lambda: server.metrics()["quantd_connections"] <= 2, 60, "they are gone")
    assert server.metrics()['quantd_connections_ended_total{reason="no_handshake"}'] >= 900
    calls.stop()
    for connection in halves:
        connection.close()
    server.wait_for_log("more like it", 30)


def test_hellos_that_drip(files, start_tls):  # noqa: F811
    server = start_tls(files, *files.flags)
    first = hello(files.context(check=False))
    calls = Calls(server.stub)
    slow = [server.raw() for _ in range(50)]
    until = time.monotonic() + 60
    for byte in first:
        for connection in list(slow):
            try:
                connection.sendall(bytes([byte]))
            except OSError:
                slow.remove(connection)
        if not slow or time.monotonic() > until:
            break
        time.sleep(0.1)
    assert not slow, "they were let drip for longer than a handshake may take"
    calls.stop()


def test_hellos_that_announce_much(files, start_tls):  # noqa: F811
    """128 KiB each, which OpenSSL would allocate at once."""
    server = start_tls(files, *files.flags, "--max_connections=700")  # 500 are below one address's share
    before = server.status()["VmRSS"]
    connections = [server.raw() for _ in range(500)]
    for connection in connections:
        connection.sendall(b"\x16\x03\x01\x02\x00\x01\x01\xf0\x00" + b"\x03\x03" + bytes(200))
    name = 'quantd_tls_handshakes_refused_total{reason="protocol"}'
    wait_for(lambda: server.metrics()[name] == 500, 30, "all are refused")
    assert SANITIZED or server.status()["VmRSS"] - before < 32 << 10
    for connection in connections:
        connection.close()


def test_full_handshakes_by_the_hundred(files, start_tls):  # noqa: F811
    """A peer that begins handshakes again and again waits behind itself."""
    server = start_tls(files, *files.flags)
    calls = Calls(server.stub)
    ended = threading.Event()

    def shake():
        context = files.context(check=False)
        while not ended.is_set():
            try:
                with server.connect(context):
                    pass
            except OSError:
                pass

    threads = [threading.Thread(target=shake) for _ in range(8)]
    for thread in threads:
        thread.start()
    wait_for(lambda: server.metrics()["quantd_connections_accepted_total"] > 300, 60, "handshakes")
    ended.set()
    for thread in threads:
        thread.join()
    calls.stop()


def test_random_bytes(files, start_tls):  # noqa: F811
    """2,000 connections that begin like a handshake and continue with anything; seeds are printed."""
    server = start_tls(files, *files.mutual, client=files.client)
    seed = int(os.environ.get("QUANTD_SEED", time.time_ns() % 1_000_000))
    print("QUANTD_SEED:", seed)
    generator = random.Random(seed)
    first = hello(files.context(check=False))
    calls = Calls(server.stub)
    for i in range(2000):
        data = bytearray(first)
        for _ in range(generator.randrange(6)):
            data[generator.randrange(len(data))] = generator.randrange(256)
        if i % 3 == 0:
            data += generator.randbytes(generator.randrange(2000))
        if i % 7 == 0:
            data = bytearray(generator.randbytes(generator.randrange(1, 500)))
        with server.raw() as connection:
            try:
                connection.sendall(data[: generator.randrange(1, len(data) + 1)])
            except OSError:
                pass
    calls.stop()
    assert server.process.poll() is None
    wait_for(lambda: server.metrics()["quantd_connections"] <= 2, 60, "they are gone")


def test_records_of_a_byte(files, start_tls):  # noqa: F811
    """A frame in as many records as it has bytes: only its own connection slows down."""
    server = start_tls(files, *files.flags)
    calls = Calls(server.stub)
    with Peer(server.address, tls=files.context()) as peer:
        peer.socket.settimeout(0.5)
        stream = peer.next_stream()
        peer.send(frame(HEADERS, 4, stream, request_headers("Quantize")))
        payload = frame(DATA, 0, stream, message(bytes(15_000))[:15_000])
        for byte in payload:
            try:
                peer.socket.sendall(bytes([byte]))
            except OSError:
                break  # it is no longer read
        wait_for(lambda: server.metrics()["quantd_connections_throttled_total"] >= 1, 30, "it is throttled")
    calls.stop()


def test_who_does_not_read(files, start_tls):  # noqa: F811
    """A response that stands still in TLS holds its memory only until another request needs it."""
    server = start_tls(files, *files.flags, "--memory_budget_bytes=60000000", "--stall_timeout=1")
    request = pb.DequantizeRequest(scale=tensor(1.0))
    request.x.data_type, request.x.raw_data = 3, bytes(5_000_000)
    request.x.shape.append(5_000_000)
    body = message(request.SerializeToString())
    with Peer(server.address, tls=files.context(), receive_buffer=4096, window=1 << 30) as peer:
        for _ in range(3):
            stream = peer.next_stream()
            peer.send(frame(HEADERS, 4, stream, request_headers("Dequantize")))
            sent = 0
            while sent < len(body):
                chunk = body[sent : sent + 16_000]
                sent += len(chunk)
                try:
                    peer.send(frame(DATA, 1 if sent == len(body) else 0, stream, chunk))
                except OSError:
                    break
        answer = server.stub.Quantize(quantize(np.ones(8_000_000), scale=1.0), timeout=60)
        assert len(answer.y.raw_data) == 8_000_000
    assert server.process.poll() is None


def dequantize(size):
    """From `size` UINT8 elements to four times as many bytes."""
    request = pb.DequantizeRequest(scale=tensor(1.0))
    request.x.data_type, request.x.raw_data = 2, bytes(size)
    request.x.shape.append(size)
    return message(request.SerializeToString())


@pytest.mark.parametrize("secure", [True, False])
def test_deadlines_of_calls_whose_frames_wait(files, start_tls, start, secure):  # noqa: F811
    """Streams whose window is too small for their responses, between large responses, so that a frame of one has begun
    when  the peer stops reading. Their deadlines pass; then it reads again. The server used to write the freed response
    to the  socket (with TLS it crashed)."""
    server = start_tls(files, *files.flags) if secure else start()
    item = message(pb.StreamRequest(id=1, quantize=quantize(np.ones(100), scale=[1.0])).SerializeToString())
    tls = files.context() if secure else None
    with Peer(server.address, tls=tls, receive_buffer=4096, window=20, frame=65536) as peer:

        def open_large():
            stream = peer.next_stream()
            window = frame(WINDOW_UPDATE, 0, stream, struct.pack(">I", 1 << 30))
            return stream, frame(HEADERS, END_HEADERS, stream, request_headers("Dequantize")) + window

        stream, head = open_large()
        peer.send(head)
        peer.upload_on(stream, dequantize(5_000_000))  # its response fills the socket and the queued frames
        said, small = b"", []
        for _ in range(45):
            small.append(peer.next_stream())
            said += frame(HEADERS, END_HEADERS, small[-1], request_headers("Stream", [("grpc-timeout", "2S")]))
            said += frame(DATA, 0, small[-1], item)
            stream, head = open_large()
            body = dequantize(30_000)
            said += head + frame(DATA, 0, stream, body[:16000]) + frame(DATA, END_STREAM, stream, body[16000:])
        peer.send(said)
        first = peer.until(DATA, small[0])[3]
        time.sleep(2.5)  # after all deadlines
        for stream in small:
            while stream not in peer.over:
                assert peer.read_frame(), "the server has closed the connection"
            got, status = peer.data.get(stream, b""), peer.headers.get(stream, {}).get("grpc-status")
            assert (got, status) in ((first, None), (b"", "4")), "no status follows a part of a message"
    assert len(server.stub.Quantize(quantize(np.ones(100), scale=[1.0])).y.raw_data) == 100


def test_resets_and_cuts(files, start_tls):  # noqa: F811
    server = start_tls(files, *files.flags)
    calls = Calls(server.stub)
    generator = random.Random(1)
    for i in range(200):
        connection = server.connect(files.context(check=False)) if i % 2 else server.raw()
        raw = connection
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        try:
            connection.sendall(generator.randbytes(generator.randrange(1, 3000)))
        except OSError:
            pass
        raw.close()
    calls.stop()
    assert server.process.poll() is None


@pytest.mark.skipif(SANITIZED, reason="a sanitizer's memory is not the server's")
def test_what_a_connection_takes(files, start_tls):  # noqa: F811
    """Idle ones, and some that hold half a record: the memory in memory/shares.h is enough."""
    server = start_tls(files, *files.flags, "--max_connections=700")
    before = server.status()["VmRSS"]
    peers = [Peer(server.address, tls=files.context()) for _ in range(300)]
    wait_for(lambda: server.metrics()["quantd_connections"] >= 300, 30, "all are here")
    idle = (server.status()["VmRSS"] - before) / 300
    for peer in peers:
        raw = socket.socket(fileno=os.dup(peer.socket.fileno()))
        raw.sendall(b"\x17\x03\x03\x40\x00" + bytes(16_000))  # 384 bytes are missing
        raw.close()
    time.sleep(1)
    half = (server.status()["VmRSS"] - before) / 300
    print(f"KiB a connection: idle {idle:.1f}, with half a record {half:.1f}")
    assert idle < 64 and half < 92
    for peer in peers:
        peer.close()
