"""Fixtures: `server` is shared by a module's tests and must be alive after them; `start` starts one for a single test."""

import shutil
import sys
import zlib
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import quantctl  # noqa: E402
from shared import Folder  # noqa: E402
from support import Server  # noqa: E402

# Files that take long, the longest first (run.sh, build/results/e2e.tsv). If they began last, all others would have to wait for them.
LONG = (
    "memory_limits tls quantctl_large shared_memory_hostile tls_hostile limits hostile front soak quantctl "
    "overload traces tls_reload faults logs"
).split()


def pytest_addoption(parser):
    parser.addoption("--update", action="store_true", help="write the golden files instead of comparing with them")
    parser.addoption("--fifth", metavar="SEED", help="a fifth of the cases; each seed chooses others")


def pytest_configure(config):
    config.option.loadscopereorder = False  # pytest-xdist's own order: files with many tests first
    config.addinivalue_line("markers", "gate: runs in suite attacks, not in the default suite e2e")


def pytest_collection_modifyitems(config, items):
    if (seed := config.getoption("--fifth")) is not None:
        left_out = [item for item in items if zlib.crc32(f"{seed} {item.nodeid}".encode()) % 5]
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if item not in left_out]
    rank = {f"test_{name}": i for i, name in enumerate(LONG)}
    items.sort(key=lambda item: rank.get(item.path.stem, len(rank)))  # keeps the order within a file


@pytest.fixture(scope="module")
def server_flags():
    """The flags of a module's `server`; a module may define a fixture of this name."""
    return ()


@pytest.fixture(scope="module")
def folder():
    """A folder for shared memory."""
    made = Folder()
    yield made
    made.remove()


@pytest.fixture(scope="module")
def server(tmp_path_factory, server_flags):
    running = Server(tmp_path_factory.mktemp("server"), *server_flags)
    yield running
    assert running.process.poll() is None, f"the server died:\n{running.log()[-4000:]}"
    assert running.stop() == 0, f"no clean end:\n{running.log()[-4000:]}"


@pytest.fixture
def here(tmp_path, monkeypatch):
    """The test runs in its own folder, which is removed afterwards: some files are large."""
    monkeypatch.chdir(tmp_path)
    yield
    shutil.rmtree(tmp_path)


@pytest.fixture
def ctl(here):
    """quantctl, run in that folder."""
    return quantctl.ctl


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
