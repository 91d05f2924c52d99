"""Hostile peers of the TLS port: they lose their own connection, and no other client loses a call."""

import contextlib
import os
import socket
import ssl
import struct
import threading
import time

import pytest

from bystander import Bystander
from http2 import Peer
from support import SANITIZED, wait_for
from tls import files, start_tls  # noqa: F401

pytestmark = pytest.mark.gate


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
    with contextlib.ExitStack() as stack, Bystander(server, server.stub) as bystander:
        for _ in range(1000):
            connection = stack.enter_context(server.raw())
            connection.sendall(first)
        wait_for(lambda: server.metrics()["quantd_connections"] >= 900, 30, "they are there")
        # None of them is left when the time for a handshake is over.
        wait_for(lambda: server.metrics()["quantd_connections"] <= 2, 60, "they are gone")
    bystander.unharmed(memory_mib=1000 * (64 + 28) * 1.25 / 1024, p99_seconds=5)
    assert server.metrics()['quantd_connections_ended_total{reason="no_handshake"}'] >= 900
    server.wait_for_log("more like it", 30)


def test_a_flood_of_hellos_on_the_http_port(files, start_tls):  # noqa: F811
    """Two addresses open connections, say hello and reset them, as fast as they can: each probe of another address is answered."""
    server = start_tls(files, *files.flags)
    host, port = server.http.rsplit(":", 1)
    context = files.context(check=False, protocols=())
    first, ended, count, seconds = hello(context), threading.Event(), 0, []

    def connect(source):
        peer = socket.socket()
        peer.bind((source, 0))
        peer.settimeout(5)
        peer.connect((host, int(port)))
        return peer

    def flood(source):
        nonlocal count
        while not ended.is_set():
            with contextlib.suppress(OSError), connect(source) as peer:
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                peer.sendall(first)
                count += 1

    threads = [threading.Thread(target=flood, args=(f"127.0.0.{2 + number % 2}",)) for number in range(4)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(20):
            begin = time.monotonic()
            with context.wrap_socket(connect("127.0.0.9")) as probe:
                probe.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
                assert probe.recv(100).startswith(b"HTTP/1.1 200")
            seconds.append(time.monotonic() - begin)
            time.sleep(0.1)
    finally:
        ended.set()
        for thread in threads:
            thread.join()
    print(f"{count} hellos; 20 probes, at most {max(seconds):.2f} s")
    assert max(seconds) < 1 or SANITIZED


def test_full_handshakes_by_the_hundred(files, start_tls):  # noqa: F811
    """A peer that begins handshakes again and again waits behind itself."""
    server = start_tls(files, *files.flags)
    ended = threading.Event()

    def shake():
        context = files.context(check=False)
        while not ended.is_set():
            try:
                with server.connect(context):
                    pass
            except OSError:
                pass

    with Bystander(server, server.stub) as bystander:
        threads = [threading.Thread(target=shake) for _ in range(8)]
        for thread in threads:
            thread.start()
        wait_for(lambda: server.metrics()["quantd_connections_accepted_total"] > 300, 60, "handshakes")
        ended.set()
        for thread in threads:
            thread.join()
    bystander.unharmed(memory_mib=64, p99_seconds=5)


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
