"""Permits: which requests are refused, which wait, and that none waits for ever."""

import grpc
import numpy as np
from google.rpc import error_details_pb2, status_pb2

from support import pb, tensor, wait_for


def test_a_full_queue_asks_to_retry(start):
    """Answers that a client does not read keep their memory: some requests wait for it, more are refused, and none is
    lost."""
    server = start("--memory_budget_bytes=41943040", "--receive_budget_bytes=536870912", "--max_queued_requests=2", "--stall_timeout=60s")
    # More than its connection takes in unread: this answer and the next one are kept.
    item = pb.StreamRequest(id=1, dynamic_quantize=pb.DynamicQuantizeRequest(x=tensor(np.ones(4_000_000))))
    unread = server.stub.Stream(iter([item] * 6), timeout=60)
    held = []

    def stands_still():
        held.append(server.metrics()["quantd_inflight_bytes"])
        return held[-1] > 2 * 4_000_000 and held[-10:] == [held[-1]] * 10

    wait_for(stands_still, 20, "the stream keeps its permits")
    request = pb.DynamicQuantizeRequest(x=tensor(np.ones(6_000_000)))
    futures = [server.stub.DynamicQuantize.future(request, timeout=60) for _ in range(8)]
    wait_for(lambda: sum(future.done() for future in futures) >= 6, 20, "six requests are refused")
    answers = list(unread)
    assert [answer.id for answer in answers] == [1] * 6
    refused_items = sum(answer.WhichOneof("response") == "error" for answer in answers)
    errors = [future.exception() for future in futures]
    refused = [error for error in errors if error is not None]
    assert 6 <= len(refused) <= 7
    for error in refused:
        assert error.code() == grpc.StatusCode.UNAVAILABLE
        details = dict(error.trailing_metadata())["grpc-status-details-bin"]
        names = [detail.TypeName() for detail in status_pb2.Status.FromString(details).details]
        assert error_details_pb2.RetryInfo.DESCRIPTOR.full_name in names
        assert "--max_queued_requests" in error.details()
    assert server.metrics()['quantd_rejected_total{reason="queue_full"}'] == len(refused) + refused_items
    wait_for(lambda: server.metrics()["quantd_inflight_requests"] == 0, 10, "all permits are free")
    assert server.metrics()["quantd_inflight_bytes"] == 0


def test_streams_that_need_each_others_memory_do_not_wait_for_ever(start):
    """Two items of the size fit into the budget, not three; several streams send many."""
    server = start("--memory_budget_bytes=2600000")
    x = tensor(np.ones(200_000))

    def items():
        for number in range(10):
            yield pb.StreamRequest(id=number, dynamic_quantize=pb.DynamicQuantizeRequest(x=x))

    streams = [server.stub.Stream(items(), timeout=30) for _ in range(6)]
    for stream in streams:
        answers = list(stream)
        assert sorted(answer.id for answer in answers) == list(range(10))
        assert all(answer.WhichOneof("response") == "dynamic_quantize" for answer in answers)
