"""Fixtures of the client's unit tests: real servers, one that is slow, and clients of them."""

import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent))
import raw_server  # noqa: E402
import quantd  # noqa: E402
import slow_server  # noqa: E402

sys.path.append(str(raw_server.ROOT / "tests" / "e2e"))  # certificates.py


@pytest.fixture(scope="session")
def address(large):
    """Of a real server."""
    return large.address


@pytest.fixture(scope="session")
def elsewhere():
    """The address of a slow server in a process of its own: none of its threads is in this process."""
    with subprocess.Popen([sys.executable, slow_server.__file__], stdout=subprocess.PIPE, text=True) as process:
        yield process.stdout.readline().strip()
        process.kill()


@pytest.fixture()
def client(request):
    """Of the real server, or of the one whose fixture the test's module names as SERVER."""
    with quantd.Client(request.getfixturevalue(getattr(request.module, "SERVER", "address")), timeout=30) as c:
        yield c


@pytest.fixture(autouse=True)
def no_environment(monkeypatch):
    """The user's environment must not affect the tests."""
    for name in ("QUANTD_ADDRESS", "QUANTD_TLS_CA", "QUANTD_TLS_CERT", "QUANTD_TLS_KEY", "QUANTD_AUTH_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)


def _real(*flags):
    if not raw_server.BINARY.exists():
        pytest.skip(f"{raw_server.BINARY} is not built")
    server = raw_server.Quantd(*flags)
    try:
        with quantd.Client(server.address, timeout=120) as c:
            yield c
    finally:
        server.stop()


@pytest.fixture(scope="session")
def small():
    """A client of a real server that accepts messages of up to 1 MiB."""
    yield from _real("--max_message_bytes=1048576")


@pytest.fixture(scope="session")
def large():
    """A client of a real server that accepts messages of up to 128 MiB."""
    yield from _real("--max_message_bytes=134217728")


@pytest.fixture(params=["local", "server"])
def engine(request):
    """A server, and quantd.local()."""
    if request.param == "server":
        yield request.getfixturevalue("large")
        return
    pytest.importorskip("quantd_core", reason="quantd-core is not installed: ./tests/run.sh engine builds it")
    with quantd.local(1) as local:
        yield local
