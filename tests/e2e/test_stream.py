"""Stream: any mix of the three operations, answers by id, a bad item fails alone."""

import random
import threading

import grpc
import numpy as np
import pytest

from http2 import SETTINGS, Peer, message
from support import FLOAT, pb, quantize, tensor, tensor_pb2, wait_for


def dequantize(codes, scale=0.5):
    x = tensor_pb2.Tensor(data_type=2, shape=[len(codes)], raw_data=bytes(codes))
    return pb.DequantizeRequest(x=x, scale=tensor(scale))


def test_a_mix_of_good_and_bad_items(server):
    seed = random.randrange(1 << 30)
    print("seed", seed)
    rng = random.Random(seed)
    requests, expected = [], {}
    for number in range(200):
        item_id = rng.randrange(1 << 64)
        values = np.array([rng.uniform(0, 100) for _ in range(rng.choice([0, 1, 7, 1000, 50_000]))], np.float32)
        kind = rng.randrange(5)
        if kind == 0:
            requests.append(pb.StreamRequest(id=item_id, quantize=quantize(values)))
            expected[item_id] = ("quantize", np.rint(values / np.float32(0.5)).clip(0, 255).astype(np.uint8).tobytes())
        elif kind == 1:
            codes = bytes(rng.randrange(256) for _ in range(100))
            requests.append(pb.StreamRequest(id=item_id, dequantize=dequantize(codes)))
            expected[item_id] = ("dequantize", (np.frombuffer(codes, np.uint8) * np.float32(0.5)).tobytes())
        elif kind == 2:
            requests.append(pb.StreamRequest(id=item_id, dynamic_quantize=pb.DynamicQuantizeRequest(x=tensor(values))))
            expected[item_id] = ("dynamic_quantize", None)
        elif kind == 3:
            requests.append(pb.StreamRequest(id=item_id, quantize=quantize(values, scale=0.0)))
            expected[item_id] = ("error", "scale")
        else:
            requests.append(pb.StreamRequest(id=item_id))
            expected[item_id] = ("error", None)
    answers = list(server.stub.Stream(iter(requests), timeout=60))
    assert len(answers) == len(requests)
    for answer in answers:
        kind, value = expected.pop(answer.id)
        assert answer.WhichOneof("response") == kind
        if kind == "error":
            assert answer.error.code == grpc.StatusCode.INVALID_ARGUMENT.value[0] and answer.error.message
            if value is not None:
                assert [violation.field for violation in answer.error.field_violations] == [value]
        elif value is not None:
            assert getattr(answer, kind).y.raw_data == value
    assert not expected


def test_an_item_that_is_no_message_fails_alone(server):
    call = server.channel().stream_stream("/quantd.v1.QuantizationService/Stream")
    good = pb.StreamRequest(id=5, quantize=quantize([1.0])).SerializeToString()
    answers = [pb.StreamResponse.FromString(a) for a in call(iter([good, b"\xff\xff\xff", good]), timeout=10)]
    assert [a.WhichOneof("response") for a in answers] == ["quantize", "error", "quantize"]


def test_a_large_item_among_small_ones(server):
    x = np.random.default_rng(1).standard_normal(3_000_000).astype(np.float32)
    items = [pb.StreamRequest(id=i, dynamic_quantize=pb.DynamicQuantizeRequest(x=tensor(x[: 3_000_000 if i % 5 == 0 else 3]))) for i in range(20)]
    answers = {a.id: a.dynamic_quantize for a in server.stub.Stream(iter(items), timeout=60)}
    assert len(answers) == 20
    assert len({answers[i].y.raw_data for i in range(0, 20, 5)}) == 1
    assert all(len(answers[i].y.raw_data) == 3_000_000 for i in range(0, 20, 5))


@pytest.mark.parametrize("of_the_next", [0, 1, 4, 5, 6, 1000, 40_000])
@pytest.mark.parametrize("next_elements", [10, 30_000, 200_000])
def test_what_a_stream_may_send_unasked_ends_within_the_next_message(server, of_the_next, next_elements):
    """All that the window allows at once: an item, and `more` bytes of the next one. The rest follows when it may."""

    def item(number, elements):
        x = tensor(np.full(elements, 1, np.float32))
        return message(pb.StreamRequest(id=number, quantize=pb.QuantizeRequest(x=x, scale=tensor(0.5))).SerializeToString())

    with Peer(server.address, window=8 << 20) as peer:
        peer.until(SETTINGS)
        second = item(2, next_elements)
        wanted = peer.initial_window - min(of_the_next, len(second))
        # As many elements as fit, and a few bytes of an unknown field.
        elements = (wanted - 80) // 4
        pad = wanted - len(item(1, elements)) - 3
        first = message(item(1, elements)[5:] + b"\xfa\x01" + bytes([pad]) + bytes(pad))
        assert len(first) == wanted
        stream = peer.open("Stream")
        peer.upload_on(stream, first + second, at_once=True)
        answers = peer.ended(stream, seconds=10)
        assert answers is not None and peer.headers[stream]["grpc-status"] == "0"
        sizes = []
        while answers:
            size = int.from_bytes(answers[1:5], "big")
            sizes.append(len(pb.StreamResponse.FromString(answers[5 : 5 + size]).quantize.y.raw_data))
            answers = answers[5 + size :]
        assert sizes == [elements, next_elements]


def test_many_streams_at_once(server):
    failures = []

    def work(number):
        items = (pb.StreamRequest(id=i, quantize=quantize([float(number)], scale=1.0)) for i in range(100))
        for answer in server.stub.Stream(items, timeout=60):
            if answer.quantize.y.raw_data != bytes([number]):
                failures.append((number, answer.id))

    workers = [threading.Thread(target=work, args=(number,)) for number in range(16)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures


def test_a_stream_of_nothing(server):
    assert list(server.stub.Stream(iter([]), timeout=10)) == []


def test_clients_that_leave_in_the_middle(server):
    """Cancelled streams and calls, at every stage, leave nothing behind."""
    big = np.ones(1_000_000, np.float32)

    def endless():
        number = 0
        while True:
            yield pb.StreamRequest(id=number, quantize=quantize(big))
            number += 1

    for count in range(6):
        stream = server.stub.Stream(endless(), timeout=60)
        for _ in range(count):
            next(stream)
        stream.cancel()
    for _ in range(20):
        server.stub.Quantize.future(quantize(big), timeout=60).cancel()
    with pytest.raises(grpc.RpcError) as error:
        server.stub.Quantize(quantize(np.ones(8_000_000)), timeout=0.0005)  # too much to arrive in time
    assert error.value.code() == grpc.StatusCode.DEADLINE_EXCEEDED
    for _ in range(10):
        channel = server.channel()
        channel.unary_unary("/quantd.v1.QuantizationService/Quantize").future(quantize(big).SerializeToString())
        channel.close()
    assert server.stub.Quantize(quantize([1.0]), timeout=10).y.data_type != FLOAT
    wait_for(lambda: server.metrics()["quantd_inflight_requests"] == 0, 10, "permits come back")
    wait_for(lambda: started_and_handled(server.metrics()), 10, "every call that started is over")


def started_and_handled(metrics):
    started = sum(value for name, value in metrics.items() if name.startswith("grpc_server_started_total"))
    handled = sum(value for name, value in metrics.items() if name.startswith("grpc_server_handled_total"))
    return started == handled
