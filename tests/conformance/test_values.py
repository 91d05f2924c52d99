"""Tensors as typed values instead of bytes, in both directions, and items of a stream: the same answers in another
form."""

import itertools

import grpc
import numpy as np
import pytest

from quantd_conformance import oracle
from quantd_conformance import oracle_types as ot
import quantd
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


@pytest.mark.parametrize("t", ot.OUTPUTS, ids=name)
def test_dynamic_quantize(call, t):
    x = rng("dynamic values", t.name).standard_normal((6, 33)).astype(np.float32)
    request = message("dynamic_quantize", x, output_type=t.number, axis=0)
    as_values(request.x)
    request.output_encoding = VALUES
    answer = call("DynamicQuantize", request)
    expected = oracle.dynamic_quantize(x, output_type=t, axis=0)
    same(from_message(answer.y), expected.y, t.name, x)
    same(from_message(answer.y_scale), expected.scale, t.name)
    if expected.zero_point is not None:
        same(from_message(answer.y_zero_point), expected.zero_point, t.name)
    assert answer.y_scale.WhichOneof("contents") == "float_values"
    count(SOURCE, x.size)


@pytest.mark.usefixtures("address")
def test_stream(client):
    """A mix of the three operations and of bad items over one stream."""
    expected, futures = [], []
    with client.stream(max_in_flight=32) as stream:
        for i, t in itertools.product(range(20), ot.OUTPUTS):
            r = rng("stream", i, t.name)
            n = int(r.integers(0, 3000))
            scale = scales(r, (), ot.FLOAT)
            x = inputs(r, (n,), ot.FLOAT, np.broadcast_to(scale, (n,)), t)
            codes = any_codes(r, (n,), t)
            finite = np.clip(np.nan_to_num(x, nan=0), -1e30, 1e30).astype(np.float32)
            futures += [stream.quantize(x, scale, output_type=t.number), stream.dequantize(codes, scale),
                        stream.dynamic_quantize(finite, output_type=t.number), stream.quantize(x, np.float32(0))]
            expected += [oracle.quantize(x, scale, output_type=t).y, oracle.dequantize(codes, scale).y,
                         oracle.dynamic_quantize(finite, output_type=t).y, None]
            count("numerics oracle, Stream", 3 * n, 4)
    for future, y in zip(futures, expected):
        if y is None:
            with pytest.raises(quantd.InvalidArgumentError) as caught:
                future.result(0)
            assert caught.value.field == "scale"
        else:
            same(future.result(0).y, y)
