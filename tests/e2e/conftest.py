"""Fixtures: `server` is shared by a module's tests and must be alive after them; `start` starts one for a single test."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
from support import Server  # noqa: E402


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="write the golden files instead of comparing with them")


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    running = Server(tmp_path_factory.mktemp("server"))
    yield running
    assert running.process.poll() is None, f"the server died:\n{running.log()[-4000:]}"
    assert running.stop() == 0, f"no clean end:\n{running.log()[-4000:]}"


@pytest.fixture
def start(tmp_path_factory):
    """start(*flags, listen=..., environment=...): a server that ends with the test."""
    servers = []

    def begin(*flags, **arguments):
        servers.append(Server(tmp_path_factory.mktemp("server"), *flags, **arguments))
        return servers[-1]

    yield begin
    for running in servers:
        if running.process.poll() is None:
            running.stop()
