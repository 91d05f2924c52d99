"""The trailer quantd-timing-us: for clients that ask for it, on success and on errors."""

import time

import numpy as np

from support import pb, quantize, tensor

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


def test_an_empty_stream_has_none(server):
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
    phases = timing(call)
    assert list(phases) == ["decode", "queue", "kernel", "encode"] and phases["queue"] < 1_000_000
    after = server.metrics()
    waited = after["quantd_queue_seconds_sum"] - before["quantd_queue_seconds_sum"]
    assert after["quantd_queue_seconds_count"] - before["quantd_queue_seconds_count"] == 3 and waited < 1
