"""The error of a wrong request names the field and both numbers, and the next request is answered."""

import grpc
import numpy as np
import pytest
from google.rpc import error_details_pb2, status_pb2

from support import FLOAT, INT8, UINT8, pb, quantize, tensor, tensor_pb2

INVALID = grpc.StatusCode.INVALID_ARGUMENT
RAW = "/quantd.v1.QuantizationService/"


def details_of(error):
    """BadRequest, ErrorInfo: parsed with Google's own protos."""
    metadata = dict(error.trailing_metadata())
    status = status_pb2.Status.FromString(metadata["grpc-status-details-bin"])
    assert status.code == error.code().value[0] and status.message == error.details()
    bad, info = error_details_pb2.BadRequest(), error_details_pb2.ErrorInfo()
    for detail in status.details:
        detail.Unpack(bad) or detail.Unpack(info)
    assert info.domain == "quantd" and info.reason
    return bad, info


def raw(shape, data, data_type=FLOAT):
    return tensor_pb2.Tensor(data_type=data_type, shape=shape, raw_data=data)


ONE = tensor(1.0)
X = tensor([[1, 2, 3], [4, 5, 6]])
Q, D, Y = pb.QuantizeRequest, pb.DequantizeRequest, pb.DynamicQuantizeRequest
E = pb.QuantizeEmbeddingsRequest
UNIT, BITS = pb.EMBEDDING_RECIPE_UNIT, pb.EMBEDDING_RECIPE_BITS
# Name, request, field, words of the text: a few from each source of errors; tests/core/plan_*_test.cc and tests/server/wire/decode_test.cc
# have all.
CASES = [
    ("no scale", Q(x=X), "scale", []),
    ("too few bytes", Q(x=raw([2, 3], bytes(23)), scale=ONE), "x", ["23", "24"]),
    ("rank 65", Q(x=raw([1] * 65, bytes(4)), scale=ONE), "x", ["65", "64"]),
    ("unknown data type", Q(x=raw([1], bytes(4), 99), scale=ONE), "x", ["99"]),
    ("scale 0 at an index", Q(x=X, scale=tensor([1, 2, 0])), "scale", ["2"]),
    ("axis out of range", Q(x=X, scale=tensor([1, 2, 3]), axis=2), "axis", ["2"]),
    ("unknown order", Q(x=X, scale=ONE, zero_point_order=9), "zero_point_order", ["9"]),
    ("int_values on FLOAT", Q(x=dict(data_type=FLOAT, shape=[1], int_values=dict(values=[1])), scale=ONE), "x", ["FLOAT"]),
    ("an integer out of range", D(x=dict(data_type=INT8, shape=[1], int_values=dict(values=[128])), scale=ONE), "x", ["128"]),
    ("NaN in a dynamic range", Y(x=tensor([1, np.nan])), "x", ["1"]),
    ("a scale type that can't be one", Y(x=X, scale_type=UINT8), "scale_type", ["UINT8"]),
    ("NaN that is cut off", E(x=tensor([1, 2, np.nan]), recipe=UNIT, dimensions=2), "x", ["2", "nan"]),
    ("unknown recipe", E(x=X, recipe=5), "recipe", ["5"]),
    ("unknown bit order", E(x=X, recipe=BITS, bit_order=3), "bit_order", ["3"]),
    ("unknown threshold", E(x=X, recipe=BITS, bit_threshold=3), "bit_threshold", ["3"]),
    ("unknown signed bits", E(x=X, recipe=BITS, output_type=INT8, signed_bits=3), "signed_bits", ["3"]),
    ("dequantize to an integer", D(x=raw([1], b"1", UINT8), scale=ONE, output_type=INT8), "output_type", ["INT8"]),
]
METHODS = {Q: "Quantize", D: "Dequantize", Y: "DynamicQuantize", E: "QuantizeEmbeddings"}


@pytest.mark.parametrize("request_, field, words", [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_the_field_and_the_numbers_are_named(server, request_, field, words):
    method = getattr(server.stub, METHODS[type(request_)])
    with pytest.raises(grpc.RpcError) as caught:
        method(request_, timeout=10)
    error = caught.value
    assert error.code() == INVALID, error.details()
    bad, _ = details_of(error)
    assert len(bad.field_violations) == 1
    # A part of the field, such as x.raw_data, is named as well.
    assert bad.field_violations[0].field.split(".")[0] == field, error.details()
    for word in words:
        assert word in error.details(), error.details()
    assert "\n" not in error.details()
    assert server.stub.Quantize(quantize([1.0]), timeout=10).y.raw_data == b"\x02"


@pytest.mark.parametrize("method", ["Quantize", "Dequantize", "DynamicQuantize", "QuantizeEmbeddings"])
def test_bytes_that_are_no_message(server, method):
    good = quantize([1.0] * 100).SerializeToString()
    call = server.channel().unary_unary(RAW + method)
    for message in [b"\xff", b"\x0a", b"\x0a\xff\xff\xff\xff\x0f", b"\x0b", good[: len(good) // 2], good[:-1], b"\x00\x00"]:
        with pytest.raises(grpc.RpcError) as caught:
            call(message, timeout=10)
        assert caught.value.code() == INVALID, message[:10]


def test_empty_and_0d_tensors_are_no_error(server):
    assert server.stub.Quantize(Q(x=raw([0, 5], b""), scale=ONE), timeout=10).y.raw_data == b""
    assert server.stub.Quantize(Q(x=tensor(3.0), scale=ONE), timeout=10).y.raw_data == b"\x03"
