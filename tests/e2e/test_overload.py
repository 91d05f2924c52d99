"""More load than the server can take, and clients that do not finish what they began: other clients are served, in turn."""

import statistics
import threading
import time

import grpc
import numpy as np

from bystander import Bystander
from crowd import Crowd
from http2 import Peer
from support import FLOAT16, pb, tensor, tensor_pb2, wait_for

MIB = 1 << 20


def dynamic(elements):
    return pb.DynamicQuantizeRequest(x=tensor(np.linspace(-1, 1, elements, dtype=np.float32)))


def test_who_is_full_for_longer_than_calls_may_wait_is_not_ready(start):
    """Health's queries are answered meanwhile, and the server is ready again when there is room."""
    # Requests of one client arrive in parallel: the memory for receiving is not full.
    server = start("--memory_budget_bytes=20000000", "--receive_budget_bytes=100000000", "--stall_timeout=60", "--queue_timeout=1")
    payload = dynamic(2 * MIB).SerializeToString()
    peers = [Peer(server.address, window=0) for _ in range(12)]
    for peer in peers:
        threading.Thread(target=upload_somehow, args=(peer, payload), daemon=True).start()
    wait_for(lambda: server.metrics()["quantd_queued_requests"] > 0, 20, "all memory is held")
    over = threading.Event()

    def client():
        while not over.is_set():
            server.stub.DynamicQuantize.future(dynamic(2 * MIB), timeout=30).exception()

    clients = [threading.Thread(target=client) for _ in range(3)]
    for each in clients:
        each.start()
    try:
        wait_for(lambda: server.get("/readyz")[0] == 503, 15, "it is not ready")
        assert server.get("/livez")[0] == 200
    finally:
        for peer in peers:
            peer.close()
        over.set()
        for each in clients:
            each.join()
    wait_for(lambda: server.get("/readyz")[0] == 200, 10, "it is ready again")


def upload_somehow(peer, payload):
    try:
        peer.upload(payload)
    except (OSError, AssertionError):
        pass  # the server gave it up, or the test is over


def test_calls_that_are_cancelled_while_they_wait_are_never_computed(start):
    """They also free their place in the queue at once."""
    server = start("--memory_budget_bytes=20000000", "--threads=1", "--max_queued_requests=100")
    holder = Peer(server.address, window=0)
    holder.upload(dynamic(3 * MIB).SerializeToString())  # its answer takes a sixth of the budget
    wait_for(lambda: server.metrics()["quantd_kernel_seconds_count{operation=\"dynamic_quantize\"}"] == 1, 20, "it is computed")
    futures = [server.stub.DynamicQuantize.future(dynamic(3 * MIB), timeout=60) for _ in range(4)]
    wait_for(lambda: server.metrics()["quantd_queued_requests"] >= 1, 20, "others wait")
    late = [server.stub.DynamicQuantize.future(dynamic(3 * MIB), timeout=0.5) for _ in range(3)]
    for future in futures:
        future.cancel()
    for future in late:
        assert future.exception().code() in (grpc.StatusCode.DEADLINE_EXCEEDED, grpc.StatusCode.UNAVAILABLE)
    wait_for(lambda: server.metrics()["quantd_queued_requests"] == 0, 5, "nobody waits any more")
    holder.close()
    wait_for(lambda: server.metrics()["quantd_inflight_bytes"] == 0, 5, "all permits are free")
    assert server.metrics()["quantd_kernel_seconds_count{operation=\"dynamic_quantize\"}"] == 1
    server.stub.DynamicQuantize(dynamic(MIB), timeout=10)


def test_long_calls_give_their_core_back(start):
    """Each computes for about a second. A call that needs a core as well waits for a turn, not for their end."""
    server = start("--threads=2")
    vectors = tensor_pb2.Tensor(data_type=FLOAT16, shape=(1 << 22, 1), raw_data=b"\0\x3c" * (1 << 22))
    request = pb.QuantizeEmbeddingsRequest(x=vectors, recipe=pb.EMBEDDING_RECIPE_DIRECTION, normalize=True)
    calls = [server.stub.QuantizeEmbeddings.future(request, timeout=60) for _ in range(3)]
    wait_for(lambda: server.metrics()["quantd_busy_cores"] == 2, 20, "they compute")
    seconds = []
    while not any(call.done() for call in calls):
        begin = time.monotonic()
        server.stub.DynamicQuantize(dynamic(400_000), timeout=60)
        seconds.append(time.monotonic() - begin)
    print(f"{len(seconds)} calls, median {1e3 * statistics.median(seconds):.0f} ms, at most {1e3 * max(seconds):.0f} ms")
    assert len(seconds) >= 5
    assert statistics.median(seconds) < 0.2
    assert all(call.result().y.raw_data for call in calls)


def test_ten_times_what_it_can_do(start):
    """Meanwhile short calls are answered, as are admitted ones; the rest is told to come back."""
    server = start("--memory_budget_bytes=100000000", "--max_queued_requests=30", "--queue_timeout=1")
    server.stub.DynamicQuantize(dynamic(2 * MIB), timeout=10)
    with Bystander(server) as bystander, Crowd(server.address, clients=60, calls=4, elements=2 * MIB) as crowd:
        pass
    ok = crowd.codes.count(grpc.StatusCode.OK)
    print(f"{ok} of {len(crowd.codes)} answered, median {statistics.median(crowd.seconds):.2f} s, longest {max(crowd.seconds):.2f} s")
    assert set(crowd.codes) <= {grpc.StatusCode.OK, grpc.StatusCode.UNAVAILABLE}
    assert ok >= 30
    bystander.unharmed(memory_mib=260)
