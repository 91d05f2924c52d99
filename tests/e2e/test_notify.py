"""What systemd receives from the server (Type=notify, WatchdogSec), over a socket of the test."""

import os
import socket
import time

import pytest


class Manager:
    """The listening end of NOTIFY_SOCKET."""

    def __init__(self, name):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name[1:] if name.startswith("@") else name)

    def hear(self, timeout):
        """The next message as {name: value}; None if none arrives in time."""
        self.socket.settimeout(timeout)
        try:
            return dict(line.split("=", 1) for line in self.socket.recv(65536).decode().splitlines())
        except TimeoutError:
            return None


def until(manager, name, patience=30):
    """The first message with this name, and the number of messages before it."""
    end = time.monotonic() + patience
    for before in range(100_000):
        message = manager.hear(max(end - time.monotonic(), 0.001))
        assert message is not None, f"no {name} in {patience} s, after {before} other messages"
        if name in message:
            return message, before
    raise AssertionError(f"no {name} in 100,000 messages")


@pytest.mark.parametrize("abstract", [False, True])
def test_ready_alive_and_stopping(start, tmp_path, abstract):
    name = f"@quantd-test-{os.getpid()}-{time.monotonic_ns()}" if abstract else str(tmp_path / "notify")
    manager = Manager(name)
    environment = {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": "200000"}
    server = start("--drain_seconds=7", "--lame_duck_seconds=0.5", environment=environment)
    message = manager.hear(30)
    assert message == {"READY": "1", "STATUS": f"serving on {server.address}"}
    for _ in range(5):
        assert manager.hear(30) == {"WATCHDOG": "1"}
    server.signal()
    message, _ = until(manager, "STOPPING")
    assert message == {"STOPPING": "1", "STATUS": "draining", "EXTEND_TIMEOUT_USEC": "17500000"}
    assert server.process.wait(30) == 0
    assert manager.hear(0.01) is None
