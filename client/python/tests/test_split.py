"""Tensors over the server's limit: with a server of 1 MiB messages, the result is that of one call, byte for byte."""

import ml_dtypes
import numpy as np
import pytest

import quantd
from quantd import DataType

INPUTS = [DataType.FLOAT, DataType.FLOAT16, DataType.BFLOAT16, DataType.INT32]
OUTPUTS = [t for t in DataType if t not in INPUTS and t is not DataType.FLOAT8E8M0]
SHAPE = (7, 211, 211)  # 1.2 MiB of float; not a power of two, so that 4- and 2-bit rows begin within bytes
# For the largest types the request is too large, for the smallest ones the response: 3 times as many elements.
GRANULARITIES = [
    {},
    {"axis": 0},
    {"axis": 1},
    {"axis": -1},
    {"axis": 2, "block_size": 32},
    {"axis": 0, "block_size": 3},
    {"axis": -2, "block_size": 100},
    {"block_shape": [2, 64, 50]},
    {"block_shape": [-1, 1, -1]},
    {"block_shape": [3, -1, 210]},
]


def tensor(kind, shape=SHAPE, seed=3):
    rng = np.random.default_rng(seed)
    if kind is DataType.INT32:
        return rng.integers(-1000, 1000, shape).astype(np.int32)
    return (rng.standard_normal(shape) * 3).astype(kind.dtype)


def bits(array):
    return None if array is None else (array.dtype, array.shape, array.tobytes())


def check_error(ours, theirs):
    if theirs is None:
        assert ours is None
        return
    for name in ("saturated_elements", "non_finite_elements"):
        assert getattr(ours, name) == getattr(theirs, name), name
    for name in ("max_absolute_error", "mean_squared_error", "sqnr_db"):
        np.testing.assert_allclose(getattr(ours, name), getattr(theirs, name), rtol=1e-9, err_msg=name)


def both(small, large, operation, *arguments, **options):
    """Calls both; expects the same result, or the same error."""
    results = []
    for client in (small, large):
        try:
            results.append(getattr(client, operation)(*arguments, **options))
        except quantd.QuantdError as error:
            results.append(error)
    ours, theirs = results
    if isinstance(theirs, Exception) or isinstance(ours, Exception):
        assert str(ours) == str(theirs)
        for name in ("field_violations", "reason", "metadata"):
            assert getattr(ours, name) == getattr(theirs, name), name
        return theirs
    for name in ("y", "scale", "zero_point", "tensor_scale"):
        assert bits(getattr(ours, name, None)) == bits(getattr(theirs, name, None)), name
    for name in ("axis", "block_size", "block_shape", "input_type"):
        assert getattr(ours, name, None) == getattr(theirs, name, None), name
    check_error(getattr(ours, "error", None), getattr(theirs, "error", None))
    return theirs


@pytest.mark.parametrize("granularity", GRANULARITIES, ids=str)
@pytest.mark.parametrize("output", OUTPUTS, ids=lambda t: t.name)
def test_every_output_and_granularity(small, large, output, granularity):
    x = tensor(DataType.FLOAT, (7, 211, 401))
    found = both(small, large, "dynamic_quantize", x, output_type=output, report_error=True, **granularity)
    both(small, large, "quantize", x, found.scale, found.zero_point, output_type=output, report_error=True, **granularity)
    both(small, large, "dequantize", found.y, found.scale, found.zero_point, **granularity)
    assert bits(small.dequantize(found).y) == bits(found.dequantize().y)


@pytest.mark.parametrize("granularity", GRANULARITIES, ids=str)
@pytest.mark.parametrize("kind", INPUTS[1:], ids=lambda t: t.name)
def test_every_input_and_granularity(small, large, kind, granularity):
    x = tensor(kind, (14, 211, 211))
    for output in ("int8", "uint4", "float8_e4m3fn"):
        found = both(small, large, "dynamic_quantize", x, output_type=output, report_error=True, **granularity)
        both(small, large, "quantize", x, found.scale, found.zero_point, report_error=True, output_type=output, **granularity)


@pytest.mark.parametrize("kind", INPUTS, ids=lambda t: t.name)
@pytest.mark.parametrize("scale_type", ["float16", "bfloat16"])
def test_types_of_scales(small, large, kind, scale_type):
    x = tensor(kind, (9, 300, 256))
    for options in ({}, {"output_type": "int8", "symmetry": "symmetric", "axis": 0}, {"output_type": "int4", "axis": 1}):
        both(small, large, "dynamic_quantize", x, scale_type=scale_type, report_error=True, **options)


@pytest.mark.parametrize("kind", INPUTS, ids=lambda t: t.name)
@pytest.mark.parametrize("granularity", [
    {"block_size": 32, "axis": -1}, {"block_shape": [1, 1, 32]}, {}, {"axis": 1}, {"block_shape": [-1, 1, 32]}], ids=str)
def test_microscaling(small, large, kind, granularity):
    x = tensor(kind, (9, 300, 256))
    for output in ("float8_e4m3fn", "float8_e5m2", "float4_e2m1fn", "int8"):
        found = both(small, large, "dynamic_quantize", x, scale_type="float8_e8m0fnu", output_type=output, report_error=True,
                     **granularity)
        both(small, large, "dequantize", found.y, found.scale, output_type="bfloat16", **granularity)


@pytest.mark.parametrize("kind", INPUTS, ids=lambda t: t.name)
@pytest.mark.parametrize("granularity", [
    {"block_size": 16, "axis": -1}, {"block_size": 16, "axis": 0}, {"block_shape": [3, 16, 16]}, {}, {"axis": 1}], ids=str)
def test_nvfp4(small, large, kind, granularity):
    x = tensor(kind, (9, 300, 256))
    found = both(small, large, "dynamic_quantize", x, scale_type="float8_e4m3fn", output_type="float4_e2m1fn",
                 report_error=True, **granularity)
    both(small, large, "dequantize", found.y, found.scale, tensor_scale=found.tensor_scale, **granularity)


@pytest.mark.parametrize("kind", INPUTS, ids=lambda t: t.name)
def test_given_scales_of_every_form(small, large, kind):
    x = tensor(kind, (9, 300, 256))
    for precision in (None, "float16", "bfloat16", "float32"):
        both(small, large, "quantize", x, np.float16(0.3), precision=precision, output_type="int16", report_error=True)
        both(small, large, "quantize", x, np.float32([0.3]), precision=precision, output_type="uint2", report_error=True)
    both(small, large, "quantize", x, 0.37, np.array(5, np.int32), output_type="int8", zero_point_order="before_rounding")
    groups = tensor(DataType.FLOAT, (3, 100, 64), 5)
    both(small, large, "quantize", x, groups, report_error=True)
    both(small, large, "quantize", x, np.full(x.shape, 0.3, np.float32), np.full(x.shape, 3, np.int8), report_error=True)
    both(small, large, "quantize", x, np.full((1, 300, 1), 0.3, np.float32))


@pytest.mark.parametrize("options", [
    {}, {"block_size": 500_000, "axis": 0, "output_type": "int8"}, {"block_size": 500_000, "axis": -1, "output_type": "int2"},
    {"block_size": 1, "axis": 0, "output_type": "int2"}, {"axis": -1}], ids=str)
def test_one_dimension_and_blocks_larger_than_a_message(small, large, options):
    both(small, large, "dynamic_quantize", tensor(DataType.FLOAT, (1_200_001,)), report_error=True, **options)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("granularity", [{}, {"axis": 0}, {"axis": 2}, {"block_size": 32, "axis": 0}], ids=str)
def test_values_that_are_not_finite(small, large, bad, granularity):
    x = tensor(DataType.FLOAT, (7, 211, 401))
    x[5, 100, 7] = x[6, 1, 1] = bad
    x[5, 0, 300] = -bad
    refused = both(small, large, "dynamic_quantize", x, **granularity)
    assert f"x[{(5 * 211) * 401 + 300}] is" in str(refused)
    for output in ("int8", "uint4", "float8_e5m2", "float8_e4m3fnuz"):
        for saturate in (True, False):
            both(small, large, "dynamic_quantize", x, output_type=output, saturate=saturate, non_finite="ignore",
                 report_error=True, **granularity)
    both(small, large, "quantize", x, 0.001, output_type="float8_e4m3fn", saturate=False, report_error=True)


@pytest.mark.parametrize("granularity", [{}, {"axis": 0}, {"axis": 2}], ids=str)
@pytest.mark.parametrize("options", [
    {"output_type": "float32"}, {"output_type": "float8_e8m0fnu"}, {"scale_type": "int8"}, {"scale_type": "float8_e8m0fnu"},
    {"output_type": "float4_e2m1fn", "scale_type": "float8_e4m3fn"}], ids=str)
def test_wrong_options_are_named_before_values_that_are_not_finite(small, large, options, granularity):
    x = tensor(DataType.FLOAT, (7, 211, 401))
    both(small, large, "dynamic_quantize", x, **options, **granularity)
    x[5, 100, 7] = np.nan
    both(small, large, "dynamic_quantize", x, **options, **granularity)


def test_the_report_of_large_integers_is_of_the_integers(small, large):
    i = np.arange(300_000)
    x = np.where(i % 30 == 0, -1_015_000_095, i % 100 * 10_000_000 + i % 1000)
    x[2000] = 1_525_000_063
    both(small, large, "dynamic_quantize", x.astype(np.int32), output_type="int8", symmetry="asymmetric", report_error=True)


def test_zeros(small, large):
    x = np.zeros((300, 1000), np.float32)
    both(small, large, "dynamic_quantize", x, report_error=True)
    both(small, large, "dynamic_quantize", x, axis=0, scale_type="float8_e8m0fnu", output_type="int8", report_error=True)
    both(small, large, "dynamic_quantize", x, block_size=16, scale_type="float8_e4m3fn", output_type="float4_e2m1fn")


def test_values_that_have_no_scale(small, large):
    """The same text: the range in it is that of the whole tensor."""
    x = np.random.default_rng(1).standard_normal((300, 1600)).astype(np.float32) * np.float32(1e-44)
    refused = both(small, large, "dynamic_quantize", x, block_size=16, scale_type="float8_e4m3fn", output_type="float4_e2m1fn")
    assert f"x has values from {x.min():.6g} to {x.max():.6g}" in str(refused)


def test_errors_name_the_place_in_the_whole(small, large):
    x = np.ones((300, 1000), np.float32)
    scale = np.ones((300, 1000), np.float32)
    for wrong in (0, np.inf, 1e-30):
        scale[200, 7] = wrong
        error = both(small, large, "quantize", x, scale, precision="float16")
        assert "scale[200007] is" in str(error)
    x[250, 3] = 6e8
    for granularity in ({"axis": 0}, {"block_shape": [1, -1]}):
        assert "y_scale[250]" in str(both(small, large, "dynamic_quantize", x, scale_type="float16", **granularity))
    x[299, 999], x[0, 0] = 3e38, -3e38
    both(small, large, "dynamic_quantize", x)


@pytest.mark.parametrize("arguments,options", [
    ((np.ones(7, np.float32),), {"axis": 0}), ((np.ones((7, 7), np.float32),), {}), ((np.ones(1000, np.float32),), {"axis": 5}),
    ((1.0, np.uint8([[1]])), {}), ((np.ones((1, 1, 1), np.float32),), {}),
    ((np.ones(1000, np.float32), np.ones(999, np.uint8)), {}), ((1.0,), {"block_shape": [0, 1]}), ((1.0,), {"block_shape": [1]}),
    ((1.0,), {"block_size": -1}), ((1.0,), {"block_size": 3, "block_shape": [1, 1]}), ((1.0,), {"axis": 0, "block_shape": [1, 1]}),
    ((1.0, 3), {"output_type": "float32"}), ((1.0,), {"output_type": "float32"})], ids=repr)
def test_wrong_requests_fail_as_in_one_call(small, large, arguments, options):
    assert isinstance(both(small, large, "quantize", np.ones((300, 1000), np.float32), *arguments, **options), Exception)


def test_answers_that_are_larger_than_their_requests(small, large):
    for x, arguments, options in [
        (np.ones((1000, 3000), ml_dtypes.uint2), (np.ones(3000, np.float32),), {"axis": 1}),
        (np.ones((1000, 3001), ml_dtypes.int4), (np.ones(3001, np.float16), np.ones(3001, ml_dtypes.int4)), {"axis": -1}),
        (np.ones((1000, 3001), ml_dtypes.int4), (np.ones(3001, np.float16), np.ones(3001, np.int32)), {"axis": -1}),
        (np.ones((1000, 3000), np.uint8), (1.0,), {"output_type": "bfloat16"}),
    ]:
        both(small, large, "dequantize", x, *arguments, **options)
    assert isinstance(both(small, large, "dequantize", np.ones((1000, 3000), np.uint8),
                           np.ones(3000, ml_dtypes.float8_e8m0fnu)), Exception)  # it needs output_type


def test_any_memory_layout(small, large):
    x = tensor(DataType.FLOAT, (1000, 3000))
    for view in (x.T, x[::-1, ::3], x.astype(">f4"), np.asfortranarray(x)):
        both(small, large, "quantize", view, 0.5)
        both(small, large, "dynamic_quantize", view, axis=0)


def test_shared_memory_is_not_split_and_takes_what_is(tmp_path):
    import raw_server

    if not raw_server.BINARY.exists():
        pytest.skip(f"{raw_server.BINARY} is not built")
    server = raw_server.Quantd("--max_message_bytes=1048576", f"--shared_memory_dir={tmp_path}")
    try:
        with quantd.Client(server.address, shared_memory_dir=str(tmp_path)) as client:
            x = tensor(DataType.FLOAT, (1000, 3001))
            expected = client.quantize(x, 0.5, output_type="int4").y
            for out_type in ("int8", "int4"):
                with client.shared(x) as sx, client.shared_empty(x.shape, out_type) as out:
                    whole = client.quantize(sx, 0.5, out=out, output_type=out_type).y
                    np.testing.assert_array_equal(whole, client.quantize(x, 0.5, output_type=out_type).y)
                    out.write(np.zeros(x.shape, out.dtype))
                    pieces = client.quantize(x, 0.5, out=out, output_type=out_type).y
                    np.testing.assert_array_equal(pieces, whole)
                    np.testing.assert_array_equal(out.array(), whole)
                    np.testing.assert_array_equal(client.quantize(sx, 0.5, output_type=out_type).y, whole)
            with client.shared_empty((10,), "int8") as out, pytest.raises(quantd.InvalidArgumentError, match="room for 10 bytes"):
                client.quantize(x, 0.5, out=out)
            assert expected.shape == x.shape
    finally:
        server.stop()


def test_what_cannot_be_cut_is_refused_with_both_numbers(large):
    import raw_server

    server = raw_server.Quantd("--max_message_bytes=1024")
    try:
        with quantd.Client(server.address) as client:
            x = tensor(DataType.FLOAT, (3, 5000))
            both(client, large, "dynamic_quantize", x, axis=0)
            both(client, large, "quantize", x, 0.5)
    finally:
        server.stop()


def test_large_tensors_go_in_pieces_for_speed_with_the_same_bytes(large):
    x = tensor(DataType.FLOAT, (7_000_003,))
    one = large.dynamic_quantize(x, report_error=True)  # with an exact report, so it is sent whole
    assert large.dynamic_quantize(x).y.tobytes() == one.y.tobytes()
    assert bits(large.dequantize(one).y) == bits(large.dequantize(one.y, one.scale, one.zero_point).y)


def test_what_a_large_tensor_is_cut_into():
    """One message would be allowed, but it is sent in pieces of about 1 MiB, even where one scale makes two steps necessary."""
    from quantd import requests, split

    x = np.zeros((4000, 1000), np.float32)
    limits = split.Limits(1 << 30, 1 << 31)
    assert split.plan(requests.make("dynamic_quantize", x[:2000]), limits, None) is None
    assert split.plan(requests.make("dynamic_quantize", x, report_error=True), limits, None) is None
    first = list(next(split.plan(requests.make("dynamic_quantize", x), limits, None)))
    assert [piece.request.operands["x"].shape for piece in first] == [(1, 2)]  # the range
    codes = x.astype(np.uint8)
    for request in (requests.make("dynamic_quantize", x, axis=0), requests.make("quantize", x, 1.0), requests.make("dequantize", codes, 1.0)):
        pieces = list(next(split.plan(request, limits, None)))
        assert sum(piece.request.operands["x"].size for piece in pieces) == x.size and len(pieces) >= 15
        assert all(len(piece.request.encode()) <= 1 << 20 for piece in pieces)


@pytest.mark.parametrize("seed", range(200))
def test_boxes_are_a_partition_that_respects_blocks(seed):
    from quantd.split.cut import boxes
    from quantd.split.grid import dynamic

    rng = np.random.default_rng(seed)
    shape = tuple(int(n) for n in rng.integers(1, 20, rng.integers(1, 5)))
    grid = dynamic(shape, None, 0, [int(n) for n in rng.integers(1, 25, len(shape))])
    most = int(rng.integers(1, np.prod(shape) + 2))
    between = bool(rng.integers(2))
    found = boxes(grid, between, lambda size: np.prod(size) <= most)
    if found is None:
        assert between and np.prod(grid.block) > most
        return
    seen = np.zeros(shape, int)
    for box in found:
        seen[box] += 1
        assert seen[box].size <= most
        for part, block, length in zip(box, grid.block, shape):
            whole = part.start % block == 0 and (part.stop % block == 0 or part.stop == length)
            assert whole or (not between and part.start // block == (part.stop - 1) // block)
    assert (seen == 1).all()


def test_a_server_that_came_to_take_less_than_a_piece_is_asked_again():
    import raw_server

    if not raw_server.BINARY.exists():
        pytest.skip(f"{raw_server.BINARY} is not built")
    x = tensor(DataType.FLOAT, (512, 1024))
    first = raw_server.Quantd("--max_message_bytes=1048576")
    try:
        with quantd.Client(first.address, timeout=60) as client:
            y = client.quantize(x, 0.1).y
            port = first.address.rsplit(":", 1)[1]
            first.stop()
            first = raw_server.Quantd("--max_message_bytes=65536", f"--listen=127.0.0.1:{port}")
            np.testing.assert_array_equal(client.quantize(x, 0.1).y, y)
    finally:
        first.stop()


def test_a_matrix_is_an_array(small):
    x = tensor(DataType.FLOAT, (512, 1024))
    np.testing.assert_array_equal(small.dynamic_quantize(np.asmatrix(x)).y, small.dynamic_quantize(x).y)
