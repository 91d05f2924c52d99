"""Servers with a memory limit of 256 MiB, 1 GiB and 4 GiB, under ordinary and under hostile load: the peak stays below the limit
and below the sum of deploy/OPERATIONS.md's table, and memory is returned within ten seconds."""

import os
import struct
import threading
import time

import numpy as np
import pytest

from bystander import Bystander
from http2 import DATA, END_HEADERS, HEADERS, SETTINGS, Peer, frame, request_headers
from small_machine import Cgroup
from support import pb, rounds, tensor, wait_for

pytestmark = pytest.mark.gate

MIB = 1 << 20
LIMITS = [256 * MIB, 1024 * MIB, 4096 * MIB]
SECONDS = 2.5
# What stays resident after a burst: 8 MiB that are always kept, partly used pages, stacks, pages of the program.
LEFT = 40 * MIB


def shares(limit, threads, loops, connections, calls):
    """The table of deploy/OPERATIONS.md: memory when idle, for requests, and for receiving."""
    idle = 24 * MIB + (3 * threads + 16 + loops) * (192 << 10) + connections * (28 << 10) + calls * (10 << 10) + limit // 16
    requests = (limit - idle) // 16 * 9
    return idle, requests, limit - idle - requests


def configuration(server):
    line = next(line for line in server.log().splitlines() if " configuration " in line)
    return dict(field.split("=", 1) for field in line.split() if "=" in field)


@pytest.fixture(params=LIMITS, ids=lambda limit: f"{limit // MIB} MiB")
def limited(request, start):
    """A server with that limit, by a cgroup if one can be made; otherwise by flags with the values that the limit would
    give."""
    limit = request.param
    connections = min(max(limit >> 19, 64), 1024)
    cpus = len(os.sched_getaffinity(0))
    try:
        group = Cgroup("memory", limit).__enter__()
    except pytest.skip.Exception:
        _, requests, receiving = shares(limit, cpus, cpus, connections, 2304 + connections)
        flags = [f"--memory_budget_bytes={requests}", f"--receive_budget_bytes={receiving}", f"--max_connections={connections}"]
        yield start(*flags), limit
        return
    with group:
        server = start(before=group.command)
        told = {name: int(value) for name, value in configuration(server).items() if value.isdigit()}
        assert told["memory_limit_bytes"] == limit and told["max_connections"] == connections
        parts = shares(limit, told["threads"], told["event_loops"], connections, 2304 + connections)
        assert (told["memory_budget_bytes"], told["receive_budget_bytes"]) == parts[1:]
        assert told["most_memory_bytes"] == sum(parts) <= limit
        yield server, limit
        assert server.stop() == 0, server.log()[-2000:]


def idle_memory(server):
    """After a first call, which loads what calls need."""
    server.stub.DynamicQuantize(pb.DynamicQuantizeRequest(x=tensor([1.0])), timeout=10)
    return server.status()["VmRSS"] * 1024


def stays_within(server, limit, idle, burst):
    peak = server.status()["VmHWM"] * 1024
    begin = time.monotonic()
    wait_for(lambda: server.status()["VmRSS"] * 1024 < idle + LEFT, 10, "memory is given back")
    left = server.status()["VmRSS"] / 1024
    print(
        f"{limit // MIB} MiB, {burst}: idle {idle / MIB:.0f}, peak {peak / MIB:.0f}, back to {left:.0f} MiB "
        f"{time.monotonic() - begin:.1f} s after the burst"
    )
    assert peak < limit
    server.stub.DynamicQuantize(pb.DynamicQuantizeRequest(x=tensor([1.0])), timeout=10)


def together(clients):
    threads = [threading.Thread(target=client, daemon=True) for client in clients]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def dynamic(size):
    return pb.DynamicQuantizeRequest(x=tensor(np.linspace(-1, 1, size // 4, dtype=np.float32))).SerializeToString()


def test_ordinary_load(limited):
    """Eight clients with calls of 1, 4 and 16 MiB, two at a time each, and one with the largest possible message."""
    server, limit = limited
    idle = idle_memory(server)
    requests = [dynamic(size * MIB) for size in (1, 4, 16)]
    largest = dynamic(int(configuration(server)["max_message_bytes"]) - 100)
    failed, answered = [], []

    def client(number):
        call = server.channel().unary_unary("/quantd.v1.QuantizationService/DynamicQuantize")
        mine = [requests[number % 3], requests[(number + 1) % 3]] if number else [largest]
        for _ in rounds(SECONDS, lambda: failed or len(answered) > 20):
            for future in [call.future(request, timeout=60) for request in mine]:
                error = future.exception()
                (failed if error else answered).append(error)

    together([lambda number=number: client(number) for number in range(9)])
    print(f"{len(answered)} calls answered")
    assert failed == [] and len(answered) > 20
    stays_within(server, limit, idle, "ordinary")


def test_hostile_load(limited):
    """The most that connections can do: lengths without bytes, slow uploads, unread answers. Other clients are served."""
    server, limit = limited
    idle = idle_memory(server)
    largest = int(configuration(server)["max_message_bytes"])
    huge = b"\x00" + struct.pack(">I", largest - 1)
    upload = dynamic(min(8 * MIB, largest // 8))
    end = time.monotonic() + SECONDS

    def first_windows():
        """As much of each message as may be sent at first; nothing more of it follows. Not all at once: otherwise the other
        attacks would find no place."""
        time.sleep(SECONDS / 2)
        with Peer(server.address) as peer:
            peer.until(SETTINGS)
            body = [huge + bytes(16379), *[bytes(16384)] * (peer.initial_window // 16384 - 1)]
            for _ in range(90):
                stream = peer.next_stream()
                headers = frame(HEADERS, END_HEADERS, stream, request_headers())
                peer.send(headers + b"".join(frame(DATA, 0, stream, part) for part in body))
            time.sleep(max(0, end - time.monotonic()))

    def drips():
        time.sleep(SECONDS / 2)
        with Peer(server.address) as peer:
            streams = [peer.open() for _ in range(50)]
            for stream in streams:
                peer.send(frame(DATA, 0, stream, huge))
            while time.monotonic() < end:
                peer.send(b"".join(frame(DATA, 0, stream, bytes(500)) for stream in streams))
                time.sleep(0.1)

    def reads_no_answer():
        with Peer(server.address, window=0, timeout=max(0.1, end - time.monotonic())) as peer:
            while time.monotonic() < end:
                peer.upload(upload)

    def attack(how):
        try:
            how()
        except (OSError, AssertionError):
            pass  # the server has ended it, or the time is over

    with Bystander(server) as bystander:
        together([lambda how=how: attack(how) for how in 8 * [first_windows] + 2 * [drips] + 6 * [reads_no_answer]])
    bystander.unharmed(memory_mib=limit / MIB, p99_seconds=2)
    stays_within(server, limit, idle, "hostile")
