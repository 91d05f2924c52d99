"""The trailer quantd-timing-us: for clients that ask for it, on success and on errors."""

import threading
import time

import grpc
import numpy as np

from http2 import Peer
from support import pb, quantize, tensor, wait_for
from test_overload import upload_somehow

ASKED = (("quantd-timing", "1"),)


def timing(call):
    """The trailer's phases in microseconds; None: there is no trailer."""
    found = [value for key, value in call.trailing_metadata() if key == "quantd-timing-us"]
    assert len(found) <= 1
    return {name: int(number) for name, number in (pair.split("=") for pair in found[0].split(","))} if found else None


def test_phases_add_up(server):
    big = pb.DynamicQuantizeRequest(x=tensor(np.linspace(-1, 1, 4 << 20, dtype=np.float32)))
    begin = time.monotonic()
    _, call = server.stub.DynamicQuantize.with_call(big, timeout=60, metadata=ASKED)
    took = 1e6 * (time.monotonic() - begin)
    phases = timing(call)
    assert list(phases) == ["decode", "queue", "kernel", "encode"]
    assert phases["kernel"] > 100  # 16 MiB
    assert phases["queue"] > 100  # until all of it had arrived
    assert sum(phases.values()) <= took


def test_who_does_not_ask_gets_none(server):
    for metadata in [(), (("quantd-timing", "0"),), (("quantd-timing", ""),), (("quantd-timing", "yes"),)]:
        _, call = server.stub.Quantize.with_call(quantize([1.0]), timeout=10, metadata=metadata)
        assert timing(call) is None


def test_errors_say_how_far_they_got(server):
    def failed(request, **more):
        call = server.stub.Quantize.future(request, metadata=ASKED, timeout=more.get("timeout", 10))
        assert call.exception() is not None
        return timing(call)

    assert list(failed(quantize([1.0], scale=[1.0, 2.0]))) == ["decode"]
    # No time for decoding: the message is invalid.
    call = server.channel().unary_unary("/quantd.v1.QuantizationService/Quantize").future(b"\xff", timeout=10, metadata=ASKED)
    assert call.exception().code() == grpc.StatusCode.INVALID_ARGUMENT
    assert list(timing(call)) == ["decode"]


def test_a_refused_call_says_how_long_it_waited(start):
    """Unread answers hold all of the memory."""
    server = start("--memory_budget_bytes=20000000", "--queue_timeout=0.5", "--stall_timeout=60")
    big = pb.DynamicQuantizeRequest(x=tensor(np.ones(2 << 20)))
    peers = [Peer(server.address, window=0) for _ in range(12)]
    for peer in peers:
        threading.Thread(target=upload_somehow, args=(peer, big.SerializeToString()), daemon=True).start()

    def refused():
        call = server.stub.DynamicQuantize.future(big, timeout=60, metadata=ASKED)
        return call if call.exception() is not None and timing(call) else None

    try:
        call = wait_for(refused, 60, "the memory is held")
        assert call.exception().code() == grpc.StatusCode.UNAVAILABLE
        assert timing(call)["queue"] >= 450_000
    finally:
        for peer in peers:
            peer.close()


def test_a_stream_has_the_sums(server):
    item = pb.StreamRequest(dynamic_quantize=pb.DynamicQuantizeRequest(x=tensor(np.linspace(-1, 1, 1 << 18, dtype=np.float32))))
    sums = []
    for count in (1, 40):
        call = server.stub.Stream(iter([item] * count), timeout=60, metadata=ASKED)
        assert len(list(call)) == count
        sums.append(timing(call))
        assert list(sums[-1]) == ["decode", "queue", "kernel", "encode"]
    assert sums[1]["kernel"] > sums[0]["kernel"]
    call = server.stub.Stream(iter([]), timeout=10, metadata=ASKED)
    assert list(call) == [] and timing(call) is None


def test_an_idle_stream_is_no_queue(server):
    """The time between items is the client's."""

    def items():
        for _ in range(3):
            time.sleep(0.4)
            yield pb.StreamRequest(quantize=quantize([1.0]))

    before = server.metrics()
    call = server.stub.Stream(items(), timeout=60, metadata=ASKED)
    assert len(list(call)) == 3
    assert timing(call)["queue"] < 1_000_000
    after = server.metrics()
    waited = after["quantd_queue_seconds_sum"] - before["quantd_queue_seconds_sum"]
    assert after["quantd_queue_seconds_count"] - before["quantd_queue_seconds_count"] == 3 and waited < 1
