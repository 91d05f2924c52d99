"""Stream: any mix of the three operations, answers by id, a bad item fails alone."""

import random

import grpc
import numpy as np

from support import pb, quantize, tensor, tensor_pb2


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
