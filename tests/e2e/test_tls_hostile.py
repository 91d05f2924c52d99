"""Hostile peers of the TLS port: they lose their own connection, and no other client loses a call."""

import os
import socket
import ssl
import threading
import time

import pytest

from http2 import Peer
from support import SANITIZED, quantize, wait_for
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
