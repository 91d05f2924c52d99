"""Three servers are replaced one after the other while clients of every kind call: none loses a call.

Prints the table of deploy/OPERATIONS.md, "Restarts": pytest tests/e2e/test_rollout.py -s
"""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from balancer import Balancer
from support import ROOT, Server, wait_for

pytestmark = pytest.mark.gate

BUILD = ROOT / os.environ.get("QUANTD_BUILD_DIR", "build/release")
CPP_CLIENT = BUILD / "tests" / "client" / "split_against_servers"
LAME_DUCK = 3.0
LAG = 0.5  # the time until the balancer knows of a change: well before the lame duck's end, as in the manifests
# Like minReadySeconds in a cluster: time for clients to find the new server. gRPC first waits 1 s before it connects again
# to an address that refused, then 1.6 s.
BETWEEN_RESTARTS = 3.0


class Client:
    """A process that counts its calls until its input ends."""

    def __init__(self, *command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout.readline() == "ready\n"

    def result(self):
        out, _ = self.process.communicate(timeout=60)
        assert self.process.returncode == 0
        return json.loads(out)


@pytest.fixture
def rollout(tmp_path_factory):
    def begin(address="127.0.0.1:0"):
        return Server(
            tmp_path_factory.mktemp("server"), f"--lame_duck_seconds={LAME_DUCK}", "--drain_seconds=20", listen=(address,)
        )

    servers = [begin() for _ in range(3)]
    balancer = Balancer([(server.address, server.http) for server in servers], LAG)
    clients = []

    def restart_all():
        """The counts of all clients, by kind."""
        addresses = "ipv4:" + ",".join(server.address for server in servers)
        here = Path(__file__).resolve().parent
        clients.append(Client(sys.executable, str(here / "rollout_clients.py"), addresses, balancer.address))
        clients.append(Client(str(CPP_CLIENT), "calls", addresses))
        for index, server in enumerate(servers):
            assert server.stop(timeout=60) == 0, server.log()[-4000:]
            servers[index] = begin(server.address)
            balancer.replace(index, (servers[index].address, servers[index].http))
            wait_for(lambda index=index: balancer.ready(index), 30, "the balancer sees the new server")
            time.sleep(BETWEEN_RESTARTS)
        return {kind: counts for client in clients for kind, counts in client.result().items()}

    yield restart_all
    for client in clients:
        client.process.kill()
        client.process.wait()
        client.process.stdin.close()
        client.process.stdout.close()
    balancer.close()
    for server in servers:
        server.stop(timeout=60)


def test_no_kind_of_client_loses_a_call(rollout):
    counts = rollout()
    print("\n\n| client | calls | lost |\n|---|---|---|")
    for kind, count in counts.items():
        lost = sum(count["lost"].values())
        print(f"| {kind} | {count['answered'] + lost:,} | {lost} |")
    assert {kind: count["lost"] for kind, count in counts.items() if count["lost"]} == {}
    assert len(counts) == 8 and min(count["answered"] for count in counts.values()) > 20
