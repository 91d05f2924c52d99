"""Calibrations against a server: memory that is held; clients that stop in the middle, cancel at every stage, or never end;
drains."""

import random
import threading
import time

import grpc
import numpy as np
import pytest

from support import SANITIZED, pb, tensor, wait_for
from test_calibrate import ask, messages, of, refusal

pytestmark = pytest.mark.gate

MIB = 1 << 20
# What a channel with bins takes at most (core/src/calibrate/channels.h), and a little more.
CHANNEL = 49_300
FLOATS = np.random.default_rng(3).standard_normal((100, 200)).astype(np.float32)


class Feed:
    """A client that sends only when it is told to."""

    def __init__(self, server, first, timeout=120):
        self.condition = threading.Condition()
        self.waiting, self.ended = list(first), False
        self.call = server.stub.Calibrate.future(self._messages(), timeout=timeout)

    def _messages(self):
        while True:
            with self.condition:
                self.condition.wait_for(lambda: self.waiting or self.ended)
                if not self.waiting:
                    return
                message = self.waiting.pop(0)
            yield message

    def send(self, *more):
        with self.condition:
            self.waiting += more
            self.condition.notify()

    def end(self):
        with self.condition:
            self.ended = True
            self.condition.notify()

    def finish(self):
        self.end()
        return self.call.result()


def held(server):
    return server.metrics()["quantd_inflight_bytes"]


def channels(count, **fields):
    """The first message of a calibration of `channels` channels with bins, each with one value."""
    return next(messages([np.ones((2, count), np.float32)], method="percentile", axis=1, **fields))


@pytest.fixture
def small(start):
    return start(f"--memory_budget_bytes={64 * MIB}", "--queue_timeout=2", "--stall_timeout=1")


def test_memory_is_asked_for_before_it_is_taken(small):
    """A call keeps at most half of the budget, whatever shape it claims; and nothing remains of it."""
    before = small.resident_bytes()
    for count in (700, 100_000, 3_000_000):
        code, _, text = refusal(lambda: ask(small, [np.ones((1, count))], method="percentile", axis=1))
        assert code == grpc.StatusCode.RESOURCE_EXHAUSTED and "--memory_budget_bytes" in text
    code, _, text = refusal(lambda: ask(small, [b"QDC1\3\xa0\x1f" + b"\0\0" * 4000], method="percentile", axis=0))
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED and "--memory_budget_bytes" in text
    # As values as well, which are decoded only with memory reserved for them.
    x = of(np.ones((1, 20_000)))
    x.ClearField("raw_data")
    x.float_values.values.extend([1.0] * 20_000)
    code, _, text = refusal(lambda: ask(small, [x], method="percentile", axis=1))
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED and "--memory_budget_bytes" in text
    assert ask(small, [np.ones((2, 600))], method="percentile", axis=1).elements == 1200
    # Without bins, a channel takes 40 bytes.
    assert ask(small, [np.ones((1, 500_000))], axis=1).elements == 500_000
    wait_for(lambda: held(small) == 0, 10, "all is given back")
    assert SANITIZED or small.resident_bytes() - before < 64 * MIB


def test_values_that_are_decoded_late_are_the_same(small):
    x = of(np.ones((10, 20_000)))
    values = of(np.ones((10, 20_000)))
    values.ClearField("raw_data")
    values.float_values.values.extend([1.0] * 200_000)
    assert ask(small, [values], method="percentile", state=True) == ask(small, [x], method="percentile", state=True)


def test_what_is_held_is_counted_and_full_is_unavailable(small):
    feeds = [Feed(small, [channels(300)]) for _ in range(2)]
    # The memory of the messages themselves is returned.
    wait_for(lambda: 2 * 300 * (CHANNEL - 200) <= held(small) < 2 * 300 * CHANNEL, 20, "two that hold, and nothing else")
    code, _, text = refusal(lambda: ask(small, [np.ones((1, 300))], method="percentile", axis=1))
    assert code == grpc.StatusCode.UNAVAILABLE and "hold" in text
    # The other half is for other requests, small and large, and for calls that hold memory.
    small.stub.DynamicQuantize(pb.DynamicQuantizeRequest(x=tensor(np.ones(2_000_000))), timeout=20)
    for feed in feeds:
        feed.send(pb.CalibrateRequest(x=of(np.full((5, 300), 7))))
        assert feed.finish().elements == 2100
    wait_for(lambda: held(small) == 0, 10, "all is given back")


def test_who_holds_and_sends_nothing_is_given_up_when_others_want_it(small):
    idle = Feed(small, [channels(600)])
    tiny = Feed(small, [pb.CalibrateRequest(x=tensor([1.0]))])
    wait_for(lambda: held(small) > 500 * CHANNEL, 20, "one that holds")
    time.sleep(2.5)
    assert not idle.call.done()  # no other call needs it

    def other():
        try:
            return ask(small, [np.ones((1, 600))], method="percentile", axis=1)
        except grpc.RpcError as error:
            assert error.code() == grpc.StatusCode.UNAVAILABLE
            return None

    assert wait_for(other, 20, "the memory of the idle one").elements == 600
    error = idle.call.exception(timeout=10)
    assert error.code() == grpc.StatusCode.UNAVAILABLE and "--stall_timeout" in error.details()
    idle.end()
    assert tiny.finish().elements == 1  # it holds next to nothing
    assert small.metrics()['quantd_rejected_total{reason="upload_stalled"}'] == 1


def test_a_message_over_the_limit(start):
    server = start(f"--max_message_bytes={MIB}")
    parts = [np.ones(1000), np.ones(MIB // 4 + 10), np.ones(1000)]
    code, _, text = refusal(lambda: ask(server, parts))
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED and "--max_message_bytes" in text
    # So is that of the response.
    code, _, text = refusal(lambda: ask(server, [np.ones((1, 100_000))], axis=1))
    assert code == grpc.StatusCode.RESOURCE_EXHAUSTED and "--max_message_bytes" in text
    assert ask(server, parts[:1]).elements == 1000


def test_a_slow_client_disturbs_nobody(server):
    feed = Feed(server, [pb.CalibrateRequest(x=tensor([-3.0]))])
    for number in range(5):
        feed.send(pb.CalibrateRequest(x=tensor([number])))
        assert ask(server, [FLOATS]).elements == FLOATS.size
        time.sleep(0.05)
    assert feed.finish().elements == 6


def test_a_deadline_ends_an_endless_stream(server):
    def endless():
        while True:
            yield pb.CalibrateRequest(x=of(FLOATS))

    code, _, _ = refusal(lambda: server.stub.Calibrate(endless(), timeout=1))
    assert code == grpc.StatusCode.DEADLINE_EXCEEDED
    wait_for(lambda: held(server) == 0 and server.metrics()["quantd_calls"] == 0, 10, "nothing is left")


def test_cancelled_at_every_stage(server):
    """Before, between, while counting, while searching for a threshold, and while the answer is being sent."""
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng = random.Random(seed)
    x = np.random.default_rng(seed).standard_normal((2000, 250)).astype(np.float32)
    started = time.monotonic()
    for number in range(120):
        parts = [x[:20], x, x[:5]] if number % 2 else list(np.array_split(x, 10))
        call = server.stub.Calibrate.future(messages(parts, method="mse", output_type="int8", axis=1, state=True), timeout=60)
        time.sleep(rng.choice([0, 0.001, 0.01, 0.05, 0.1]))
        call.cancel()
    # No search, each of which takes a second or more, continued to its end.
    wait_for(lambda: held(server) == 0 and server.metrics()["quantd_busy_cores"] == 0, 20, "nothing is left")
    assert time.monotonic() - started < 60
    assert server.metrics()["quantd_calls"] == 0
    assert ask(server, [x[:100]], axis=1).elements == 25_000


def test_a_long_search_keeps_nobody_waiting_and_can_be_cancelled(server):
    x = np.random.default_rng(1).standard_normal((500, 400)).astype(np.float32)
    call = server.stub.Calibrate.future(messages([x], method="mse", output_type="int8", axis=1), timeout=120)
    answered = 0
    while not call.done() and answered < 20:
        server.stub.GetServerInfo(pb.GetServerInfoRequest(), timeout=10)
        ask(server, [np.ones(10)])
        answered += 1
    assert answered > 0
    call.cancel()
    wait_for(lambda: server.metrics()["quantd_busy_cores"] == 0, 10, "the search has stopped")


def test_a_drain_lets_a_calibration_end(start):
    server = start("--drain_seconds=20")
    feed = Feed(server, [pb.CalibrateRequest(x=tensor([-1.0]))])
    wait_for(lambda: server.metrics()['grpc_server_msg_received_total{grpc_type="client_stream",'
             'grpc_service="quantd.v1.QuantizationService",grpc_method="Calibrate"}'] == 1, 10, "its first message")
    server.signal()
    wait_for(lambda: "draining" in server.log(), 10, "the drain")
    feed.send(pb.CalibrateRequest(x=tensor([2.0])))
    answer = feed.finish()
    assert answer.elements == 2
    assert server.process.wait(15) == 0


def test_a_drain_ends_what_does_not(start):
    server = start("--drain_seconds=1")
    feed = Feed(server, [pb.CalibrateRequest(x=tensor([-1.0]))])
    wait_for(lambda: server.metrics()["quantd_calls"] == 1, 10, "the call")
    server.signal()
    error = feed.call.exception(timeout=15)
    feed.end()
    assert error.code() == grpc.StatusCode.UNAVAILABLE and "draining" in error.details()
    assert server.process.wait(15) == 0
