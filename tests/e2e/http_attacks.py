"""What a hostile peer can do to an HTTP port, over raw sockets, and what can be measured of the server meanwhile. Everything is bounded in bytes and
in seconds; it knows of quantd only an address and a process id."""

import contextlib
import re
import selectors
import socket
import threading
import time
from pathlib import Path

GET_LIVEZ = b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n"
GET_METRICS = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"


def connect(address, timeout=5.0, receive_buffer=None):
    host, port = address.rsplit(":", 1)
    connection = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
    if receive_buffer is not None:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
    connection.settimeout(timeout)
    connection.connect((host.strip("[]"), int(port)))
    return connection


def read_to_end(connection, seconds=10.0):
    """Everything until the end of the connection, however it ends. TimeoutError if it does not end."""
    end = time.monotonic() + seconds
    received = bytearray()
    with contextlib.suppress(ConnectionError):
        while piece := connection.recv(65536):
            received += piece
            if time.monotonic() > end:
                raise TimeoutError(f"{len(received)} bytes in {seconds} s, and no end")
    return bytes(received)


def ask(address, data, timeout=5.0):
    """Sends bytes; returns everything up to the end of the connection."""
    with connect(address, timeout) as connection:
        with contextlib.suppress(ConnectionError):
            connection.sendall(data)
        return read_to_end(connection)


def status_of(answer):
    """The status code of an answer; 0 if there was none."""
    found = re.match(rb"HTTP/1\.1 (\d{3}) [A-Za-z ]+\r\n", answer)
    return int(found.group(1)) if found else 0


def latencies(address, count, pause=0.0, timeout=5.0):
    """Seconds from the connect to the last byte of /livez, sorted; the timeout where the status was not 200. Stops after three
    of these."""
    seconds = []
    while len(seconds) < count and seconds.count(timeout) < 3:
        begin = time.monotonic()
        try:
            good = status_of(ask(address, GET_LIVEZ, timeout)) == 200
        except OSError:
            good = False
        seconds.append(time.monotonic() - begin if good else timeout)
        time.sleep(pause)
    return sorted(seconds)


def status_field(pid, field):
    """A number of /proc/PID/status; sizes in bytes."""
    line = re.search(rf"^{field}:\s*(\d+)( kB)?$", Path(f"/proc/{pid}/status").read_text(), re.MULTILINE)
    return int(line.group(1)) * (1024 if line.group(2) else 1)


class Growth:
    """with Growth(pid) as growth: ...; afterwards growth.bytes is the increase of resident memory at its peak."""

    def __init__(self, pid):
        self.pid = pid
        self.bytes = None

    def __enter__(self):
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")  # resets the peak
        self.before = status_field(self.pid, "VmRSS")
        return self

    def __exit__(self, *_):
        self.bytes = status_field(self.pid, "VmHWM") - self.before


class Crowd:
    """Connections that stay: some idle, some sending a byte a second. When one is closed, it connects again at once."""

    def __init__(self, address, idle=0, dripping=0):
        self.address = address
        self.wanted = {None: idle, b"GET /livez HTTP/1.1\r\nX: ": dripping}
        self.stop = threading.Event()
        self.cut = 0  # connections that the server closed
        self.thread = threading.Thread(target=self._run)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        self.thread.join()

    def _run(self):
        with selectors.DefaultSelector() as selector:
            drips = 0
            next_drip = 0.0
            while not self.stop.is_set():
                self._join(selector)
                for key, _ in selector.select(0.01):
                    with contextlib.suppress(BlockingIOError):
                        try:
                            ended = not key.fileobj.recv(65536)
                        except ConnectionError:
                            ended = True
                        if ended:
                            self._leave(selector, key)
                            self.cut += 1
                if time.monotonic() < next_drip:
                    continue
                next_drip = time.monotonic() + 1
                drips += 1
                for key in list(selector.get_map().values()):
                    if key.data is not None:
                        with contextlib.suppress(OSError):
                            key.fileobj.send(key.data[drips % len(key.data)].to_bytes(1, "big"))
            for key in list(selector.get_map().values()):
                self._leave(selector, key)

    def _join(self, selector):
        """At most a hundred at a time, so that the server is measured and not this loop."""
        have = [key.data for key in selector.get_map().values()]
        for data, wanted in self.wanted.items():
            for _ in range(min(100, wanted - have.count(data))):
                try:
                    connection = connect(self.address, 1.0)
                except OSError:
                    return
                connection.setblocking(False)
                selector.register(connection, selectors.EVENT_READ, data)

    @staticmethod
    def _leave(selector, key):
        selector.unregister(key.fileobj)
        key.fileobj.close()
