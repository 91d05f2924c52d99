"""An honest client during an attack: its answers must arrive, and soon."""

import threading
import time
from pathlib import Path

import grpc

from support import SANITIZED, pb_grpc, quantize


class Bystander:
    """Calls Quantize every few milliseconds on its own connection, or over `stub`, during the `with` block."""

    def __init__(self, server, stub=None):
        self.server = server
        self.stub = stub or pb_grpc.QuantizationServiceStub(server.channel())
        self.seconds = []
        self.failures = []
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._stop.wait(0.002):
            begin = time.monotonic()
            try:
                self.stub.Quantize(quantize([1.0, 2.0]), timeout=10)
            except grpc.RpcError as error:
                self.failures.append(f"{error.code().name}: {error.details()}")
            self.seconds.append(time.monotonic() - begin)

    def __enter__(self):
        self.stub.Quantize(quantize([1.0]), timeout=10)
        self.before = self.server.status()
        # The peak is that of this block, not an earlier one.
        Path(f"/proc/{self.server.process.pid}/clear_refs").write_text("5")
        self._thread.start()
        return self

    def __exit__(self, *_):
        until = time.monotonic() + 20  # if the attack was over at once
        while len(self.seconds) <= 10 and not self.failures and time.monotonic() < until:
            time.sleep(0.01)
        self._stop.set()
        self._thread.join()
        self.after = self.server.status()

    def p99(self):
        return sorted(self.seconds)[int(len(self.seconds) * 0.99)]

    def grown_mib(self):
        """The peak of the memory, minus its size before."""
        return (self.after["VmHWM"] - self.before["VmRSS"]) / 1024

    def unharmed(self, memory_mib, p99_seconds=1.0):
        """Asserts that no call failed, that answers arrived in time, and that the server stayed within
        these limits."""
        grown = self.grown_mib()
        print(
            f"bystander: {len(self.seconds)} calls, p99 {1e3 * self.p99():.1f} ms; memory +{grown:.1f} MiB, "
            f"threads {self.before['Threads']} -> {self.after['Threads']}"
        )
        assert self.server.process.poll() is None, f"the server died:\n{self.server.log()[-2000:]}"
        assert not self.failures, self.failures[:3]
        assert len(self.seconds) > 10
        assert self.p99() < p99_seconds
        assert grown < memory_mib or SANITIZED
        assert self.after["Threads"] <= self.before["Threads"] + 2
