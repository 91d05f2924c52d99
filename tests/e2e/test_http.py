"""The HTTP side under attack: what the peers get, and that /livez answers and memory stays where it was."""

import contextlib
import os
import time
from pathlib import Path

import pytest
from http_attacks import GET_LIVEZ, Crowd, Growth
from http_attacks import ask, connect, latencies, status_of

from support import quantize, wait_for

MIB = 1 << 20
# What an attack may cost. Pages are allocated and freed, and the allocator's heap grows by 8 MiB at a time.
MAX_GROWTH = 16 * MIB
# /livez should answer within 50 ms; on a machine that is busy with other work it sometimes takes longer.
MAX_LATENCY = 0.25


def livez_answers(server, count=5):
    """Every answer arrives, normally in time."""
    seconds = latencies(server.http, count, pause=0.01)
    return len(seconds) == count and seconds[-1] < 5 and seconds[count // 2] < MAX_LATENCY


def stays_alive(server, seconds):
    """For long enough that the server has probed itself several times."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        assert status_of(ask(server.http, GET_LIVEZ)) == 200
        time.sleep(0.1)


@pytest.fixture(autouse=True)
def livez_answers_afterwards(server):
    yield
    assert livez_answers(server)


def open_descriptors(server):
    return len(os.listdir(f"/proc/{server.process.pid}/fd"))


def cpu_seconds(server):
    fields = Path(f"/proc/{server.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def test_livez_among_1000_idle_and_64_dripping_connections(server):
    with Growth(server.process.pid) as growth, Crowd(server.http, idle=1000, dripping=64) as crowd:
        time.sleep(1)
        seconds = latencies(server.http, 200, pause=0.01)
    median, p99, slowest = seconds[len(seconds) // 2], seconds[len(seconds) * 99 // 100], seconds[-1]
    print(f"/livez: median {median * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms, slowest {slowest * 1e3:.1f} ms")
    print(f"resident memory grew by {growth.bytes / MIB:.1f} MiB; {crowd.cut} connections were cut and came again")
    assert p99 < MAX_LATENCY and slowest < 2
    assert growth.bytes < MAX_GROWTH


def test_livez_when_the_descriptors_are_taken(start):
    """Of 80 descriptors HTTP takes a quarter, and gRPC has the others. When these are used up as well, /livez still answers, and no
    thread spins."""
    server = start(descriptors=80)
    with contextlib.ExitStack() as held:
        for _ in range(300):
            held.enter_context(connect(server.http))
        assert open_descriptors(server) < 60
        assert server.stub.Quantize(quantize([1.0]), timeout=10).y.raw_data == b"\x02"
        for _ in range(150):
            with contextlib.suppress(OSError):
                held.enter_context(connect(server.address, 0.5))
        wait_for(lambda: open_descriptors(server) == 80, 5, "there are no descriptors left")
        before = cpu_seconds(server)
        assert livez_answers(server, 50)
        # Idle ones in between do not occupy the few descriptors that are reserved for HTTP.
        for _ in range(20):
            held.enter_context(connect(server.http))
        assert livez_answers(server, 20)
        # /livez probes the gRPC port, which needs a descriptor: if there is none, the server must not be restarted for that.
        stays_alive(server, 4)
        assert cpu_seconds(server) - before < 1
    assert livez_answers(server)
    assert server.stub.Quantize(quantize([1.0]), timeout=10).y.raw_data == b"\x02"
