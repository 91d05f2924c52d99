"""The HTTP side under attack: what the peers get, and that /livez answers and memory stays where it was."""

import time

import pytest
from http_attacks import Crowd, Growth
from http_attacks import latencies


MIB = 1 << 20
# What an attack may cost. Pages are allocated and freed, and the allocator's heap grows by 8 MiB at a time.
MAX_GROWTH = 16 * MIB
# /livez should answer within 50 ms; on a machine that is busy with other work it sometimes takes longer.
MAX_LATENCY = 0.25


def livez_answers(server, count=5):
    """Every answer arrives, normally in time."""
    seconds = latencies(server.http, count, pause=0.01)
    return len(seconds) == count and seconds[-1] < 5 and seconds[count // 2] < MAX_LATENCY


@pytest.fixture(autouse=True)
def livez_answers_afterwards(server):
    yield
    assert livez_answers(server)


def test_livez_among_1000_idle_and_64_dripping_connections(server):
    with Growth(server.process.pid) as growth, Crowd(server.http, idle=1000, dripping=64) as crowd:
        time.sleep(1)
        seconds = latencies(server.http, 200, pause=0.01)
    median, p99, slowest = seconds[len(seconds) // 2], seconds[len(seconds) * 99 // 100], seconds[-1]
    print(f"/livez: median {median * 1e3:.1f} ms, p99 {p99 * 1e3:.1f} ms, slowest {slowest * 1e3:.1f} ms")
    print(f"resident memory grew by {growth.bytes / MIB:.1f} MiB; {crowd.cut} connections were cut and came again")
    assert p99 < MAX_LATENCY and slowest < 2
    assert growth.bytes < MAX_GROWTH
