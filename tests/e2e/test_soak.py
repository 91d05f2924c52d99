"""All kinds of clients at once, for QUANTD_SOAK_SECONDS (`./tests/run.sh soak`: minutes). Afterwards the server has as many descriptors and threads
as before, no more memory, and its counters add up."""

import os
import random
import struct
import threading
import time

import grpc
import numpy as np
import pytest

from http2 import DATA, END_HEADERS, HEADERS, PING, RST_STREAM, Peer, frame, message, request_headers
from support import pb, pb_grpc, quantize, tensor, wait_for

pytestmark = pytest.mark.gate

SECONDS = float(os.environ.get("QUANTD_SOAK_SECONDS", "6"))
MIB = 1 << 20


class Clients:
    def __init__(self, server):
        self.server = server
        self.seed = int(os.environ.get("QUANTD_TEST_SEED", random.randrange(1 << 32)))
        print(f"QUANTD_TEST_SEED={self.seed}")
        self.stop = threading.Event()
        self.answered = {}
        self.wrong = []

    def stub(self):
        return pb_grpc.QuantizationServiceStub(self.server.channel())

    def count(self, name):
        self.answered[name] = self.answered.get(name, 0) + 1

    def valid(self, rng):
        stub = self.stub()
        while not self.stop.is_set():
            n = rng.choice([0, 1, 5, 1000, 70_000, 300_000])
            x = np.linspace(-1, 1, n, dtype=np.float32)
            try:
                answer = stub.Quantize(quantize(x, scale=1 / 64, output_type=3), timeout=30)
            except grpc.RpcError as error:
                self.wrong.append(f"valid: {error.code().name} {error.details()}")
                continue
            self.count("valid")
            if answer.y.raw_data != np.rint(x * 64).astype(np.int8).tobytes():
                self.wrong.append(f"valid: wrong bytes for {n} elements")

    def streaming(self, rng):
        stub = self.stub()
        while not self.stop.is_set():
            sizes = [rng.choice([1, 100, 20_000]) for _ in range(rng.randrange(1, 40))]
            items = [pb.StreamRequest(id=i + 1, quantize=quantize(np.ones(n), scale=1.0)) for i, n in enumerate(sizes)]
            try:
                answers = list(stub.Stream(iter(items), timeout=30))
            except grpc.RpcError as error:
                self.wrong.append(f"streaming: {error.code().name} {error.details()}")
                continue
            self.count("streaming")
            if [(a.id, len(a.quantize.y.raw_data)) for a in answers] != [(i + 1, n) for i, n in enumerate(sizes)]:
                self.wrong.append("streaming: wrong answers")

    def invalid(self, rng):
        stub = self.stub()
        bad = [
            pb.QuantizeRequest(), quantize([1.0], scale=0.0), pb.QuantizeRequest(x=dict(data_type=99), scale=tensor(1.0)),
            pb.QuantizeRequest(x=dict(data_type=1, shape=[1 << 40], raw_data=b"abcd"), scale=tensor(1.0)),
            quantize([1.0, 2.0, 3.0], scale=[1.0, 2.0]),
        ]  # fmt: skip
        while not self.stop.is_set():
            error = stub.Quantize.future(rng.choice(bad), timeout=30).exception()
            self.count("invalid")
            if error is None or error.code() != grpc.StatusCode.INVALID_ARGUMENT:
                self.wrong.append(f"invalid: {error}")

    def cancelling(self, rng):
        stub = self.stub()
        request = pb.DynamicQuantizeRequest(x=tensor(np.ones(200_000)), report_error=True)
        while not self.stop.is_set():
            futures = [stub.DynamicQuantize.future(request, timeout=rng.choice([0.001, 0.01, 30])) for _ in range(8)]
            time.sleep(rng.random() * 0.01)
            for future in futures:
                future.cancel()
            self.count("cancelling")

    def slow(self, rng):
        """Half a message, slow bytes, unread answers; then the client disconnects."""
        payload = pb.DynamicQuantizeRequest(x=tensor(np.ones(50_000))).SerializeToString()
        while not self.stop.is_set():
            try:
                with Peer(self.server.address, window=rng.choice([0, 1000, 65535])) as peer:
                    for _ in range(rng.randrange(1, 20)):
                        stream = peer.open()
                        size = rng.choice([5, 1000, 20_000])
                        peer.send(frame(DATA, 0, stream, b"\x00" + struct.pack(">I", len(payload)) + payload[:size]))
                    for _ in range(10):
                        peer.send(frame(DATA, 0, 1, b"x"))
                        time.sleep(0.01)
                self.count("slow")
            except OSError:
                self.count("slow, cut off")

    def hostile(self, rng):
        small = message(pb.DynamicQuantizeRequest(x=tensor([1.0])).SerializeToString())
        while not self.stop.is_set():
            try:
                with Peer(self.server.address, polite=rng.random() < 0.5, timeout=1) as peer:
                    for _ in range(rng.randrange(1, 30)):
                        stream = peer.next_stream()
                        head = frame(HEADERS, END_HEADERS, stream, request_headers(rng.choice(["Quantize", "Stream", "Nothing"])))
                        kind = rng.randrange(6)
                        if kind == 0:
                            peer.send(head + frame(RST_STREAM, 0, stream, bytes(4)))
                        elif kind == 1:
                            peer.send(head + frame(DATA, 1, stream, small[: rng.randrange(len(small))]))
                        elif kind == 2:
                            peer.send(head + frame(DATA, 1, stream, b"\x00\xff\xff\xff\xff" + bytes(rng.randrange(1000))))
                        elif kind == 3:
                            peer.send(frame(PING, 0, 0, bytes(8)) * 100)
                        elif kind == 4:
                            peer.send(head + frame(DATA, 0, stream, small) * 20)
                        else:
                            peer.send(rng.randbytes(rng.randrange(100)))
                self.count("hostile")
            except OSError:
                self.count("hostile, cut off")
            time.sleep(0.005)

    def run(self, seconds):
        kinds = [self.valid, self.valid, self.streaming, self.invalid, self.cancelling, self.slow, self.hostile]
        threads = [threading.Thread(target=kind, args=(random.Random(self.seed + i),)) for i, kind in enumerate(kinds)]
        for thread in threads:
            thread.start()
        time.sleep(seconds)
        self.stop.set()
        for thread in threads:
            thread.join()
        while self.server.channels:
            self.server.channels.pop().close()


def test_all_kinds_of_clients_at_once(start):
    server = start("--memory_budget_bytes=100000000")
    clients = Clients(server)
    clients.run(min(3.0, SECONDS / 2))  # caches fill, pools grow
    clients.stop.clear()
    settle(server)
    before = state(server)
    clients.run(SECONDS)
    settle(server)
    after = state(server)
    print(clients.answered)
    print(f"before {before}\nafter  {after}")
    assert clients.wrong == []
    assert after["threads"] <= before["threads"] + 1
    assert after["descriptors"] <= before["descriptors"] + 2
    assert after["MiB"] <= before["MiB"] + 24
    metrics = server.metrics()
    for method in ("Quantize", "Dequantize", "DynamicQuantize", "Stream"):
        started = sum(v for k, v in metrics.items() if k.startswith("grpc_server_started_total") and f'"{method}"' in k)
        handled = sum(v for k, v in metrics.items() if k.startswith("grpc_server_handled_total") and f'"{method}"' in k)
        assert started == handled, method
    for gauge in ("calls", "inflight_requests", "inflight_bytes", "receiving_bytes", "queued_requests", "busy_cores"):
        assert metrics[f"quantd_{gauge}"] == 0, gauge


def settle(server):
    wait_for(lambda: server.metrics()["quantd_calls"] == 0, 20, "all calls are over")
    time.sleep(6)  # the memory kept for them is given back


def state(server):
    status = server.status()
    return {
        "threads": status["Threads"],
        "descriptors": len(os.listdir(f"/proc/{server.process.pid}/fd")),
        "MiB": status["VmRSS"] // 1024,
    }
