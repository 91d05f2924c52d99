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


def test_the_watchdog_hears_nothing_from_a_port_that_is_dead(start, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "100000"}
    listen = tmp_path / "socket"
    server = start(listen=(f"unix:{listen}",), environment=environment)
    until(manager, "WATCHDOG")
    listen.rename(tmp_path / "elsewhere")  # nobody accepts connections
    end = time.monotonic() + 30
    while manager.hear(2) is not None:
        assert time.monotonic() < end, "a dead port is still said to live"
    assert server.process.poll() is None and server.get("/livez")[0] == 503
    (tmp_path / "elsewhere").rename(listen)
    until(manager, "WATCHDOG")


@pytest.mark.parametrize(
    "environment, said",
    [
        ({"NOTIFY_SOCKET": "relative"}, "NOTIFY_SOCKET is 'relative'"),
        ({"NOTIFY_SOCKET": "/a\nb" + "x" * 200}, "NOTIFY_SOCKET has 204 bytes"),
        ({"NOTIFY_SOCKET": "rel\nline"}, r"NOTIFY_SOCKET is 'rel\x0aline'"),
        ({"NOTIFY_SOCKET": "/no/such/socket"}, "cannot tell NOTIFY_SOCKET /no/such/socket"),
        ({"NOTIFY_SOCKET": "/dev/null", "WATCHDOG_USEC": "soon"}, "WATCHDOG_USEC is 'soon'"),
    ],
)
def test_a_manager_that_cannot_be_told_is_one_line_and_no_reason_not_to_serve(start, environment, said):
    server = start(environment=environment)
    end = time.monotonic() + 20
    while said not in server.log():
        assert time.monotonic() < end, server.log()
        time.sleep(0.01)
    assert server.get("/readyz")[0] == 200
    assert server.stop() == 0
    # A missing socket is reported when the server is ready and when it stops; invalid variables once.
    assert server.log().count("NOTIFY_SOCKET" if "WATCHDOG_USEC" not in environment else "WATCHDOG_USEC") in (1, 2)


def test_a_manager_that_stops_reading_does_not_hold_the_server_up(start, tmp_path):
    manager = Manager(str(tmp_path / "notify"))
    environment = {"NOTIFY_SOCKET": str(tmp_path / "notify"), "WATCHDOG_USEC": "1000"}
    server = start(environment=environment)
    end = time.monotonic() + 60
    while "nobody reads it" not in server.log():
        assert time.monotonic() < end, "its queue never filled"
        time.sleep(0.05)
    assert server.stop(30) == 0
    assert server.log().count("nobody reads it") <= 2  # one for the watchdog, one for the end
    assert manager.hear(1)["READY"] == "1"
