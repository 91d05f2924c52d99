"""Resident memory: small when idle, and returned after a burst."""

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
