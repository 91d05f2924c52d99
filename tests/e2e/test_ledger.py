"""The ledger of server/transport/README.md, from outside: every frame in every state of a stream, many times, read and unread. For each of them the
server's memory stays bounded, an honest client is served, every connection that ends is counted, and nothing is left.

The pairs come from the tables of frames.py; a test covers one state, and sends each frame on a connection of its own."""

import contextlib
import re
import time
from pathlib import Path

import pytest

from attackers import Attackers
from bystander import Bystander
from frames import FRAMES, PARTS, STATES, of_part
from http2 import GOAWAY, RST_STREAM, Peer
from support import SANITIZED, wait_for

pytestmark = pytest.mark.gate

SECONDS = {"read": 1.0, "unread": 0.7}
# For 70 connections with up to 200 streams each, which take 28 and 10 KiB in the memory table (deploy/OPERATIONS.md): far below that.
MEMORY_MIB = 24
# Ten lines of each kind in ten seconds, and one that counts the others.
LINES = 150
TOO_MANY = 'quantd_connections_ended_total{reason="too_many"}'


def ended(metrics):
    return sum(value for name, value in metrics.items() if name.startswith("quantd_connections_ended_total"))


def suffer(server, name, seconds):
    """Runs the attack while an honest client makes calls, and returns what was seen of both."""
    before = server.metrics()
    lines = server.log().count("\n")
    with Bystander(server) as bystander:
        with Attackers(server.address, name, seconds) as attack:
            pass
    for channel in server.channels:
        channel.close()
    server.channels.clear()
    assert server.process.poll() is None, f"the server died:\n{server.log()[-2000:]}"
    wait_for(lambda: server.metrics()["quantd_calls"] == 0, 10, "no call is left")
    wait_for(lambda: server.metrics()["quantd_connections"] == 0, 10, "no connection is left")
    after = server.metrics()
    accepted = after["quantd_connections_accepted_total"] - before["quantd_connections_accepted_total"]
    refused = [after[TOO_MANY] - before[TOO_MANY], accepted]
    assert sum(refused) >= attack.result.opened
    return bystander, attack.result, ended(after) - ended(before), server.log().count("\n") - lines


def complaint(server, state, reads, part, idle=None):
    """Attacks the server, and returns what went wrong; empty: nothing. `idle`: KiB of memory before."""
    bystander, result, ends, lines = suffer(server, f"state:{state}:{reads}:{part}", SECONDS[reads])
    frames = of_part(part)
    grown = (bystander.after["VmHWM"] - (idle or server.idle)) / 1024
    print(
        f"{len(frames)} frames: {result.taken >> 10} KiB taken, {result.opened} connections, {result.closed} closed; bystander "
        f"{len(bystander.seconds)} calls, p99 {1e3 * bystander.p99():.1f} ms; memory +{grown:.1f} MiB; {lines} lines"
    )
    if bystander.failures:
        return f"{len(bystander.failures)} calls of {len(bystander.seconds)} failed: {bystander.failures[0]}"
    if grown > MEMORY_MIB and not SANITIZED:
        return f"memory grew by {grown:.1f} MiB"
    if bystander.p99() >= 1:
        return f"p99 is {bystander.p99():.2f} s"
    if bystander.after["Threads"] > bystander.before["Threads"] + 2:
        return f"threads: {bystander.before['Threads']} -> {bystander.after['Threads']}"
    if lines > LINES:
        return f"{lines} lines of the log"
    if "GOAWAY" in STATES[state].name:
        return ""
    # Except those whose frames ask for the end of the connection.
    by_us = sum(closed for closed, frame in zip(result.closed_by, frames) if frame.kind != GOAWAY)
    return f"{by_us} connections were closed, and {ends} were counted" if by_us > ends else ""


def guilty(server, state, reads, part):
    """The first frame of the part that alone has the same effect."""
    for sent in of_part(part):
        if complaint(server, state, reads, f"#{FRAMES.index(sent)}", server.status()["VmRSS"]):
            return sent.name
    return "none alone"


@pytest.fixture(scope="module")
def warm(server):
    """The server after its first call, with its memory then (KiB)."""
    with Bystander(server):
        pass
    server.idle = server.status()["VmRSS"]
    return server


@pytest.mark.parametrize("reads", ["read", "unread"])
@pytest.mark.parametrize("state", range(len(STATES)), ids=[state.name for state in STATES])
def test_every_frame_in_every_state(warm, state, reads):
    for part in ["all"] if reads == "read" else map(str, range(PARTS)):
        wrong = complaint(warm, state, reads, part)
        assert not wrong, f"{wrong}; the frame: {guilty(warm, state, reads, part)}"


@pytest.mark.parametrize("state", [state for state in STATES if state.target is None and not state.once], ids=lambda state: state.name)
def test_a_state_is_what_it_is_called(warm, state):
    """Otherwise, all pairs might be the same."""
    with Peer(warm.address, polite=False, **state.settings) as peer:
        stream = peer.next_stream()
        peer.send(state.before(stream))
        said, end = [], time.monotonic() + 5
        peer.socket.settimeout(0.3)
        with contextlib.suppress(TimeoutError):
            while time.monotonic() < end and (got := peer.read_frame()):
                if got[2] == stream and got[0] == RST_STREAM:
                    said.append(f"reset {int.from_bytes(got[3], 'big')}")
        of_headers = [peer.headers.get(stream, {}).get(name) for name in (":status", "grpc-status")]
        assert " ".join([*filter(None, of_headers), *said]) == state.says


def test_the_tables_are_complete():
    """Each type of frame of HTTP/2 and its extensions, in every state; and no name twice."""
    kinds = {frame.kind for frame in FRAMES}
    assert kinds >= {*range(10), 0xA, 0xC, 0x10} and max(kinds) > 0x10
    for table in (FRAMES, STATES):
        assert len({row.name for row in table}) == len(table)
    pairs = 2 * len(FRAMES) * len(STATES)
    print(f"{len(FRAMES)} frames x {len(STATES)} states, read and unread: {pairs} pairs")
    documented = Path(__file__).parents[2].joinpath("server/transport/README.md").read_text()
    assert re.search(rf"\b{len(FRAMES)} frames\b.*\b{len(STATES)} states\b", documented, re.DOTALL)
