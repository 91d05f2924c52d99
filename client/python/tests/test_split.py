"""Tensors over the server's limit: with a server of 1 MiB messages, the result is that of one call, or an error that says why not."""

import asyncio

import numpy as np
import pytest

import quantd
from quantd import DataType

SHAPE = (70, 61, 211)  # 3.6 MiB of float; rows of an odd length, so that 4- and 2-bit rows begin within bytes
# How scales lie, and whether rows have scales of their own, so that they can be found in pieces.
GRANULARITIES = [
    ({}, False),
    ({"axis": 0}, True),
    ({"axis": 1}, False),
    ({"axis": 2, "block_size": 32}, True),
    ({"axis": -1, "block_size": 32}, True),
    ({"axis": 0, "block_size": 3}, True),
    ({"axis": 0, "block_size": 100}, False),
    ({"block_shape": [2, 64, 50]}, True),
    ({"block_shape": [-1, 1, -1]}, False),
]


def tensor(shape=SHAPE, seed=3):
    return (np.random.default_rng(seed).standard_normal(shape) * 3).astype(np.float32)


def bits(array):
    return None if array is None else (array.dtype, array.shape, array.tobytes())


def same(small, large, operation, *arguments, **options):
    ours, theirs = (getattr(client, operation)(*arguments, **options) for client in (small, large))
    for name in ("y", "scale", "zero_point", "tensor_scale"):
        assert bits(getattr(ours, name, None)) == bits(getattr(theirs, name, None)), name
    for name in ("axis", "block_size", "block_shape", "input_type"):
        assert getattr(ours, name, None) == getattr(theirs, name, None), name
    return theirs


@pytest.mark.parametrize("granularity, own", GRANULARITIES, ids=str)
@pytest.mark.parametrize("output", ["uint8", "int16", "int4", "uint2", "float8_e4m3fn", "float4_e2m1fn"])
def test_every_granularity(small, large, output, granularity, own):
    x = tensor()
    if own:
        found = same(small, large, "dynamic_quantize", x, output_type=output, **granularity)
    else:
        found = large.dynamic_quantize(x, output_type=output, **granularity)
        with pytest.raises(quantd.ResourceExhaustedError, match=r"a scale belongs to all of its rows; quantd\.local\(\)"):
            small.dynamic_quantize(x, output_type=output, **granularity)
    same(small, large, "quantize", x, found.scale, found.zero_point, output_type=output, **granularity)
    same(small, large, "dequantize", found.y, found.scale, found.zero_point, **granularity)
    assert bits(small.dequantize(found).y) == bits(found.dequantize().y)


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "int32"])
def test_every_input(small, large, kind):
    x = tensor().astype(quantd.data_type(kind).dtype)
    for options in ({"axis": 0}, {"axis": 0, "output_type": "float8_e5m2", "scale_type": "float8_e8m0fnu"}):
        found = same(small, large, "dynamic_quantize", x, **options)
        same(small, large, "dequantize", found.y, found.scale, found.zero_point, axis=0, output_type="float16")


def test_scales_whose_blocks_follow_from_their_shape(small, large):
    same(small, large, "quantize", tensor(), np.abs(tensor((35, 61, 1))) + 0.1)
    with pytest.raises(quantd.InvalidArgumentError) as caught:
        small.quantize(tensor(), np.ones((3, 61, 1), np.float32))
    assert caught.value.field == "scale"


@pytest.mark.parametrize("options, why", [
    (dict(axis=0, report_error=True), "report_error is of one message"),
    (dict(axis=-1, block_size=16, output_type="float4_e2m1fn", scale_type="float8_e4m3fn"), "NVFP4"),
    (dict(axis=0, block_size=60), "the rows of a scale do not fit"),
], ids=str)
def test_what_cannot_be_cut_says_why(small, options, why):
    with pytest.raises(quantd.ResourceExhaustedError, match=why):
        small.dynamic_quantize(tensor(), **options)


def test_a_row_larger_than_a_message(small):
    with pytest.raises(quantd.ResourceExhaustedError, match="a row of it does not fit"):
        small.quantize(tensor((2, 500_000)), 1.0)


@pytest.mark.parametrize("field, scale, options", [
    ("scale", np.ones(69, np.float32), {"axis": 0}),
    ("axis", np.ones(70, np.float32), {"axis": 3}),
    ("block_shape", np.ones((70, 61, 1), np.float32), {"block_shape": [1, 1]}),
])
def test_what_does_not_go_together_names_its_field(small, large, field, scale, options):
    for client in (small, large):
        with pytest.raises(quantd.InvalidArgumentError) as caught:
            client.quantize(tensor(), scale, **options)
        assert caught.value.field == field


def test_an_error_says_where_its_piece_begins(small):
    x = tensor()
    x[65, 3, 5] = np.nan
    with pytest.raises(quantd.InvalidArgumentError, match=r"is nan.* \(in the piece of x that begins with row") as caught:
        small.dynamic_quantize(x, axis=0)
    assert caught.value.field == "x"


@pytest.mark.parametrize("preset", ["pgvector", "usearch-i8", "sentence-transformers-int8"])
def test_embeddings(small, large, preset):
    x = tensor((5000, 129))
    ranges = {} if preset[0] != "s" else {"ranges": np.float32([[-3] * 129, [3] * 129])}
    same(small, large, "quantize_embeddings", x, preset=preset, **ranges)


def test_asyncio(small, large):
    async def run():
        async with quantd.AsyncClient(small.address) as client:
            return await client.dynamic_quantize(tensor(), axis=0)

    assert bits(asyncio.run(run()).y) == bits(large.dynamic_quantize(tensor(), axis=0).y)


def test_large_tensors_that_fit_are_cut_for_speed(large):
    x = tensor((2100, 2000))
    whole = large.dynamic_quantize(x)  # 16 MiB, one scale: one message
    assert bits(large.quantize(x, whole.scale, whole.zero_point).y) == bits(whole.y)
    assert whole.y.dtype == DataType.UINT8.dtype
