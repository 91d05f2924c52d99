"""Attacks on HTTP/2 servers that have become known since 2023, and floods that nobody reads, each by name (attack_table.py): from another address,
during which an honest client makes calls. tests/bench/attacks.py has the figures."""

import pytest

from attack_table import ATTACKS
from attackers import Attackers
from bystander import Bystander
from support import wait_for

pytestmark = pytest.mark.gate

SECONDS = 1.5
UNREAD_SECONDS = 2.5  # longer than --stall_timeout
# What the memory table (deploy/OPERATIONS.md) reserves for 1,024 connections and 3,328 calls, at 28 and 10 KiB: attacks get no other
# memory.
MEMORY_MIB = (1024 * 28 + 3328 * 10) / 1024
PREFIXES = (
    "answers_unread", "refused_", "pings_unread", "resets_unread", "settings_unread",  # responses that nobody reads
    "made_by_",  # CVE-2025-8671: the peer makes the server reset
    "continuations_", "unfinished_", "split_bombs_", "bombs_",  # CVE-2024-27316, and blocks that become much larger
    "churn_", "table_sizes_",  # HPACK's tables
    "windows_below_zero_", "priority_", "ping_bytes_",
)
NAMES = [name for name in ATTACKS if name.startswith(PREFIXES)]


def held_back(metrics):
    """How many connections were slowed down for many useless frames, or not read any more and then closed."""
    reasons = ("unread", "protocol_error")  # nghttp2 ends floods of acknowledgements with the latter
    ended = sum(metrics[f'quantd_connections_ended_total{{reason="{reason}"}}'] for reason in reasons)
    return ended + metrics["quantd_connections_throttled_total"]


@pytest.mark.parametrize("name", NAMES)
def test_an_attack_hurts_nobody_else(start, name):
    server = start("--stall_timeout=1s")
    unread = "_unread" in name
    with Bystander(server) as bystander, Attackers(server.address, name, UNREAD_SECONDS if unread else SECONDS) as attack:
        pass
    bystander.unharmed(memory_mib=MEMORY_MIB)
    assert attack.result.taken > 10_000, "the attack has not begun"
    assert sum(taken > 0 for taken in attack.result.taken_by) == ATTACKS[name].connections
    held = held_back(server.metrics())
    print(f"taken {attack.result.taken >> 10} KiB, closed {attack.result.closed}, held back {held:g}")
    # A peer that only causes much work, but reads its responses, is not stopped.
    assert held >= ATTACKS[name].connections or not unread
    wait_for(lambda: server.metrics()["quantd_calls"] == 0, 10, "nothing is left of the attack")


def test_a_drain_ends_beside_bombs(start):
    """The server receives SIGTERM between blocks: 100 connections send blocks until the end."""
    server = start("--drain_seconds=2")
    with Attackers(server.address, "bombs_100", SECONDS + 1):
        wait_for(lambda: server.metrics()["quantd_connections"] > 50, 10, "the attack")
        assert server.stop(timeout=8) == 0
