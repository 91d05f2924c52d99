"""Permits: what is refused, what waits, and that nothing waits for ever."""

import grpc
import numpy as np
from google.rpc import error_details_pb2, status_pb2

from support import pb, tensor


def test_a_full_queue_asks_to_retry(start):
    """More requests at once than may be worked on and may wait: some are refused, none is lost."""
    server = start("--max_inflight_requests=1", "--max_queued_requests=1", "--inline_bytes=0")
    request = pb.DynamicQuantizeRequest(x=tensor(np.ones(2_000_000)), report_error=True)
    futures = [server.stub.DynamicQuantize.future(request, timeout=60) for _ in range(32)]
    codes = []
    for future in futures:
        error = future.exception()
        codes.append(error.code() if error else grpc.StatusCode.OK)
        if error:
            details = dict(error.trailing_metadata())["grpc-status-details-bin"]
            names = [detail.TypeName() for detail in status_pb2.Status.FromString(details).details]
            assert error_details_pb2.RetryInfo.DESCRIPTOR.full_name in names
            assert "--max_queued_requests" in error.details()
    assert set(codes) == {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}
    metrics = server.metrics()
    assert metrics['quantd_rejected_total{reason="queue_full"}'] == codes.count(grpc.StatusCode.UNAVAILABLE)
    assert metrics["quantd_inflight_requests"] == 0
    assert metrics["quantd_inflight_bytes"] == 0


def test_streams_that_need_each_others_memory_do_not_wait_for_ever(start):
    """Two items of the size fit into the budget, not three; several streams send many."""
    server = start("--memory_budget_bytes=2600000", "--inline_bytes=0")
    x = tensor(np.ones(200_000))

    def items():
        for number in range(10):
            yield pb.StreamRequest(id=number, dynamic_quantize=pb.DynamicQuantizeRequest(x=x))

    streams = [server.stub.Stream(items(), timeout=30) for _ in range(6)]
    for stream in streams:
        answers = list(stream)
        assert sorted(answer.id for answer in answers) == list(range(10))
        assert all(answer.WhichOneof("response") == "dynamic_quantize" for answer in answers)
