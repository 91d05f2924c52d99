"""Hostile connections, many at once, in a process of their own and from their own address:

    with Attackers(server.address, "resets_unread", seconds=2) as attack: ...
    attack.result                     # the result: bytes that the server accepted, connections that it closed

attack_table.py has all attacks. An attack is a generator: it gets a Sender and yields bytes, which are sent as fast as the server takes them;
empty bytes mean that it has sent everything. Run as a program: attackers.py ADDRESS ATTACK SECONDS [CONNECTIONS]; prints the result as JSON."""

import dataclasses
import json
import select
import socket
import struct
import subprocess
import sys
import threading
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from http2 import PREFACE, SETTINGS, WINDOW_UPDATE, frame, settings  # noqa: E402

SOURCE = "127.0.0.2"


class Sender:
    """What an attack can see of its connection."""

    def __init__(self, number):
        self.number = number
        self.stream = -1

    def next_stream(self):
        self.stream += 2
        return self.stream


@dataclasses.dataclass
class Attack:
    make: object  # from a Sender: a generator of bytes
    connections: int = 1
    reads: bool = False
    settings: dict = dataclasses.field(default_factory=dict)
    step: int = 1 << 16  # bytes per send
    reconnects: int = 100  # of each connection, when the server closes it
    threads: object = None  # instead of `make`: from an address and an end time; one thread for each connection


@dataclasses.dataclass
class Result:
    taken: int = 0  # bytes
    opened: int = 0
    closed: int = 0  # by the server
    taken_by: list = dataclasses.field(default_factory=list)  # bytes of each connection
    closed_by: list = dataclasses.field(default_factory=list)


class Link:
    """One of the connections; it is opened again when the server closes it."""

    def __init__(self, drive, number):
        self.drive, self.number = drive, number
        self.open()

    def open(self):
        attack = self.drive.attack
        self.socket = socket.socket()
        if not attack.reads:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.bind((SOURCE, 0))
        self.socket.settimeout(5)
        self.socket.connect(self.drive.address)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        # Not acknowledged: then streams beyond the limit are reset one by one, and the connection goes on.
        first = PREFACE + frame(SETTINGS, 0, 0, settings(**attack.settings))
        first += frame(WINDOW_UPDATE, 0, 0, struct.pack(">I", (1 << 31) - 65536))
        self.waits = first
        self.pieces = attack.make(Sender(self.number))
        self.drive.result.opened += 1
        self.drive.links[self.socket.fileno()] = self
        self.drive.poll.register(self.socket, self.events(True))

    def events(self, writes):
        reads = select.EPOLLIN if self.drive.attack.reads else 0
        return reads | select.EPOLLRDHUP | (select.EPOLLOUT if writes else 0)

    def on(self, events):
        try:
            if events & select.EPOLLIN and not self.socket.recv(1 << 18):
                return self.close()
            if events & (select.EPOLLHUP | select.EPOLLERR | select.EPOLLRDHUP):
                return self.close()
            if events & select.EPOLLOUT:
                self.write()
        except BlockingIOError:
            pass
        except OSError:
            self.close()

    def write(self):
        if not self.waits:
            self.waits = next(self.pieces, b"")
        if not self.waits:
            return self.drive.poll.modify(self.socket, self.events(False))
        sent = self.socket.send(self.waits[: self.drive.attack.step])
        self.waits = self.waits[sent:]
        self.drive.result.taken += sent
        self.drive.result.taken_by[self.number] += sent

    def close(self):
        result = self.drive.result
        result.closed += 1
        result.closed_by[self.number] += 1
        self.drop()
        if result.closed_by[self.number] <= self.drive.attack.reconnects:
            try:
                self.open()
            except OSError:
                self.drop()

    def drop(self):
        self.drive.links.pop(self.socket.fileno(), None)
        self.socket.close()


class Drive:
    def __init__(self, address, attack, connections, end):
        host, port = address.rsplit(":", 1)
        self.address, self.attack = (host, int(port)), attack
        self.result = Result(taken_by=[0] * connections, closed_by=[0] * connections)
        self.poll, self.links = select.epoll(), {}
        for number in range(connections):
            try:
                Link(self, number)
            except OSError:
                self.result.closed += 1
        while (left := end - time.monotonic()) > 0 and self.links:
            for descriptor, events in self.poll.poll(min(left, 0.1)):
                if descriptor in self.links:
                    self.links[descriptor].on(events)
        for link in list(self.links.values()):
            # Closed at once, with all bytes that the server has not read yet.
            link.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            link.drop()


class Attackers:
    """Runs an attack during the `with` block, and waits for its end."""

    def __init__(self, address, name, seconds, connections=None):
        count = [] if connections is None else [str(connections)]
        self.command = [sys.executable, str(Path(__file__).resolve()), address, name, str(seconds), *count]
        self.seconds = seconds

    def __enter__(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.PIPE, text=True)
        return self

    def __exit__(self, *_):
        try:
            printed = self.process.communicate(timeout=self.seconds + 30)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            printed = self.process.communicate()[0]
        assert printed, "the attackers failed"
        self.result = Result(**json.loads(printed))


def run_threads(address, attack, connections, end):
    result = Result(opened=connections, taken_by=[0] * connections, closed_by=[0] * connections)

    def one(number):
        try:
            attack.threads(address, end)
        except (OSError, AssertionError):
            result.closed_by[number] += 1

    threads = [threading.Thread(target=one, args=(number,), daemon=True) for number in range(connections)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(max(0.1, end + 5 - time.monotonic()))
    result.closed = sum(result.closed_by)
    return result


def main(address, name, seconds, connections=None):
    from attack_table import ATTACKS

    attack = ATTACKS[name]
    count, end = int(connections or attack.connections), time.monotonic() + float(seconds)
    run = run_threads(address, attack, count, end) if attack.threads else Drive(address, attack, count, end).result
    print(json.dumps(dataclasses.asdict(run)))


if __name__ == "__main__":
    main(*sys.argv[1:])
