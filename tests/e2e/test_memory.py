"""Resident memory: small when idle, and returned after a burst."""

import threading
import time

import grpc
import numpy as np

from support import pb, tensor, wait_for

MIB = 1 << 20


def test_idle_memory(server):
    assert server.resident_bytes() < 30 * MIB


def test_memory_after_a_burst_is_given_back(start):
    server = start()
    idle = server.resident_bytes()
    request = pb.DynamicQuantizeRequest(x=tensor(np.linspace(-1, 1, 4 * MIB, dtype=np.float32)))
    serialized = request.SerializeToString()
    call = server.channel().unary_unary("/quantd.v1.QuantizationService/DynamicQuantize")
    for _ in range(50):
        for future in [call.future(serialized, timeout=60) for _ in range(4)]:
            future.result()
    busy = server.resident_bytes()
    limit = 2 * idle + 64 * MIB
    wait_for(lambda: server.resident_bytes() < limit, 10, f"{busy / MIB:.0f} MiB fall below {limit / MIB:.0f} MiB")
    # What the gauge calls kept is part of the resident memory, and small again.
    metrics = server.metrics()
    assert 0 <= metrics["quantd_pool_bytes"] <= metrics["process_resident_memory_bytes"]
    print(f"idle {idle / MIB:.1f} MiB, busy {busy / MIB:.1f} MiB, after {server.resident_bytes() / MIB:.1f} MiB")


def test_peak_memory_is_bounded_by_the_flags(start):
    """Many clients upload ten times the budget at once: memory stays bounded, clients that are refused are told to come
    back, and the server answers the next request."""
    budget = 60_000_000
    server = start(f"--memory_budget_bytes={budget}", "--max_queued_requests=1000")
    limit = server.resident_bytes() + 2 * budget + 64 * MIB
    serialized = pb.DynamicQuantizeRequest(x=tensor(np.ones(4 * MIB, np.float32))).SerializeToString()
    codes = []

    def upload():
        call = server.channel().unary_unary("/quantd.v1.QuantizationService/DynamicQuantize")
        for _ in range(2):
            error = call.future(serialized, timeout=60).exception()
            codes.append(error.code() if error else grpc.StatusCode.OK)

    clients = [threading.Thread(target=upload) for _ in range(30)]
    for client in clients:
        client.start()
    peak = 0
    while any(client.is_alive() for client in clients):
        peak = max(peak, server.resident_bytes())
        time.sleep(0.01)
    print(f"peak {peak / MIB:.0f} MiB of at most {limit / MIB:.0f}, {codes.count(grpc.StatusCode.OK)} of {len(codes)} answered")
    assert peak < limit
    assert set(codes) <= {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.RESOURCE_EXHAUSTED}
    assert codes.count(grpc.StatusCode.OK) >= 10
    answer = server.stub.DynamicQuantize(pb.DynamicQuantizeRequest(x=tensor([1.0, 2.0])), timeout=10, wait_for_ready=True)
    assert len(answer.y.raw_data) == 2
