"""Fixtures of the client's unit tests: a fake server in this process, and a client of it."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import fake_server  # noqa: E402
import quantd  # noqa: E402


@pytest.fixture(scope="session")
def address():
    server, where = fake_server.start()
    yield where
    server.stop(None)


@pytest.fixture()
def client(address):
    with quantd.Client(address, timeout=30) as c:
        yield c
