"""Tensors as typed values instead of bytes, in both directions, and items of a stream: the same answers in another
form."""

import grpc
import numpy as np
import pytest

from quantd_conformance import oracle
from quantd_conformance import oracle_types as ot
from compare import count, name, same
from generate import rng
from quantd_conformance.values import any_codes, inputs, scales, zero_points
from quantd import messages, requests
from quantd.types import from_message

VALUES = 2  # TENSOR_ENCODING_VALUES
SOURCE = "numerics oracle, typed values"


@pytest.fixture(scope="module")
def call(address):
    """Sends a message to a method of the service."""
    with grpc.insecure_channel(address) as channel:

        def send(method, request):
            answer = getattr(messages, f"{method}Response")
            return channel.unary_unary(
                f"/{messages.SERVICE}/{method}", request_serializer=lambda m: m.SerializeToString(),
                response_deserializer=answer.FromString)(request, timeout=30)

        yield send


def message(operation, *arguments, **options):
    """The message that the client would send."""
    return messages.REQUESTS[operation].FromString(requests.make(operation, *arguments, **options).encode())


def as_values(tensor):
    """Changes a raw Tensor into one with values, in place."""
    array = from_message(tensor)
    t = ot.of(array)
    if t.kind == "int":
        tensor.int_values.values.extend(ot.to_int(array).reshape(-1).tolist())
        tensor.int_values.SetInParent()
    else:
        tensor.float_values.values.extend(ot.to_float(array).reshape(-1).tolist())
        tensor.float_values.SetInParent()


@pytest.mark.parametrize("t", ot.OUTPUTS, ids=name)
@pytest.mark.parametrize("xt", ot.FLOATS + (ot.INT32,), ids=name)
def test_quantize(call, xt, t):
    r = rng("values", xt.name, t.name)
    scale, zero = scales(r, (37,), ot.FLOAT16), zero_points(r, (37,), t)
    x = inputs(r, (11, 37), xt, np.broadcast_to(scale, (11, 37)), t)
    request = message("quantize", x, scale, zero)
    for field in (request.x, request.scale, request.zero_point):
        as_values(field)
    request.output_encoding = VALUES
    y = call("Quantize", request).y
    assert y.WhichOneof("contents") == ("int_values" if t.kind == "int" else "float_values")
    expected = oracle.quantize(x, scale, zero).y
    if t.kind != "int":  # as values there is one NaN
        fine = ~np.isnan(ot.to_float(expected))
        same(from_message(y)[fine], expected[fine], f"{xt.name} to {t.name}")
        assert np.isnan(ot.to_float(from_message(y))[~fine]).all()
    else:
        same(from_message(y), expected, f"{xt.name} to {t.name}", x)
    count(SOURCE, x.size)


@pytest.mark.parametrize("t", ot.OUTPUTS + (ot.INT32,), ids=name)
@pytest.mark.parametrize("output", ot.FLOATS, ids=name)
def test_dequantize(call, output, t):
    r = rng("values back", t.name, output.name)
    x, scale = any_codes(r, (9, 31), t), scales(r, (9,), ot.BFLOAT16)
    request = message("dequantize", x, scale, axis=0, output_type=output.number)
    for field in (request.x, request.scale):
        as_values(field)
    request.output_encoding = VALUES
    y = call("Dequantize", request).y
    assert y.WhichOneof("contents") == "float_values"
    same(from_message(y), oracle.dequantize(x, scale, axis=0, output_type=output).y, f"{t.name} to {output.name}", x)
    count(SOURCE, x.size)
