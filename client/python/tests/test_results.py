"""Results remember the arguments and the client that they were made with."""

import copy
import pickle

import ml_dtypes
import numpy as np
import pytest

import quantd
from quantd import DataType

X = np.random.default_rng(1).standard_normal((6, 32)).astype(np.float32)
WAYS = [
    {},
    {"axis": 0},
    {"axis": -1, "output_type": "int8", "symmetry": "symmetric"},
    {"axis": 0, "block_size": 4, "output_type": "int4"},
    {"block_size": 16, "output_type": "uint2"},
    {"block_shape": [2, -1], "output_type": "float8_e4m3fn"},
    {"block_size": 16, "output_type": "float4_e2m1fn", "scale_type": "float8_e4m3fn"},
    {"block_size": 32, "output_type": "float8_e5m2", "scale_type": "float8_e8m0fnu"},
]


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.int32])
def test_dequantize_takes_a_result(client, way, dtype):
    x = (X * 10).astype(dtype)
    result = client.dynamic_quantize(x, **way)
    back = "float32" if dtype is np.int32 else dtype
    said = {name: way[name] for name in ("axis", "block_size", "block_shape") if name in way}
    expected = client.dequantize(
        result.y, result.scale, result.zero_point, tensor_scale=result.tensor_scale, output_type=back, **said).y
    for y in (client.dequantize(result).y, result.dequantize().y):
        assert y.dtype == np.dtype(back)
        np.testing.assert_array_equal(y, expected)
    assert result.dequantize(output_type="bfloat16").y.dtype == ml_dtypes.bfloat16
    assert np.abs(expected.astype(np.float64) - x.astype(np.float64)).max() < np.abs(x.astype(np.float64)).max()


def test_quantize_remembers_too(client):
    scale = np.linspace(0.1, 0.6, 6, dtype=np.float32)
    result = client.quantize(X.astype(np.float16), scale, np.full(6, 3, np.int8), axis=0)
    assert (result.axis, result.block_size, result.block_shape, result.input_type) == (0, 0, None, DataType.FLOAT16)
    expected = client.dequantize(result.y, scale, np.full(6, 3, np.int8), axis=0, output_type="float16").y
    scale[:] = 99  # the result has what the call had
    np.testing.assert_array_equal(client.dequantize(result).y, expected)
    blocked = client.quantize(X, np.ones((3, 8), np.float32), block_shape=np.array([2, 4]), zero_point=np.ones((3, 8), np.int8))
    assert blocked.block_shape == (2, 4)
    np.testing.assert_array_equal(blocked.dequantize().y, np.clip(np.rint(X) + 1, -128, 127) - 1)


def test_what_a_result_has_is_not_given_again(client):
    result = client.dynamic_quantize(X, axis=0)
    for options in ({"scale": 1.0}, {"axis": 0}, {"zero_point": 1}, {"tensor_scale": 1.0}, {"block_size": 2},
                    {"block_shape": [1, 1]}):
        with pytest.raises(TypeError, match=f"its own {next(iter(options))}; .*pass x.y"):
            client.dequantize(result, **options)
    with pytest.raises(TypeError, match="scale is missing"):
        client.dequantize(result.y)


def test_pickling_and_copying_drop_the_client(client):
    for result in (client.dynamic_quantize(X, axis=0, report_error=True), client.quantize(X, 0.1)):
        for again in (pickle.loads(pickle.dumps(result)), copy.deepcopy(result), copy.copy(result)):
            assert type(again) is type(result) and again.engine is None and again.error == result.error
            np.testing.assert_array_equal(again.y, result.y)
            np.testing.assert_array_equal(client.dequantize(again).y, result.dequantize().y)
            with pytest.raises(RuntimeError, match=r"has no client.*client\.dequantize\(result\).*quantd-core"):
                again.dequantize()
    assert "engine" not in repr(result)


def test_dequantized_is_an_operand(client):
    result = client.dynamic_quantize(X, axis=0)
    back = result.dequantize()
    assert (back.shape, back.dtype, back.ndim, back.size, len(back)) == (X.shape, X.dtype, 2, X.size, 6)
    np.testing.assert_array_equal(back - X, back.y - X)
    np.testing.assert_array_equal(X - back, X - back.y)
    np.testing.assert_array_equal(np.asarray(back, np.float64), back.y.astype(np.float64))
    np.testing.assert_array_equal(back[1], back.y[1])
    assert np.asarray(back) is back.y and np.abs(back - X).max() < 0.1
    assert back.T.shape == (32, 6) and float(client.dequantize(np.uint8(3), 0.5)) == 1.5
    one = client.dequantize(np.uint8(3), 1.0)
    assert int(one) == one.item() == 3 and bool(one) and back.mean() == back.y.mean() and back.tolist() == back.y.tolist()
    with pytest.raises(AttributeError, match="nosuch"):
        back.nosuch
    assert pickle.loads(pickle.dumps(back)).y.tobytes() == back.y.tobytes()
    before = back.y.copy()
    same = back
    back -= 1  # in place, as an array
    assert back is same
    np.testing.assert_array_equal(back.y, before - 1)
    taken = np.zeros_like(before)
    assert np.add(back, 1, out=taken, where=np.ones_like(back, bool)) is taken
    np.testing.assert_array_equal(taken, back.y + 1)


def test_results_have_the_shape_the_type_and_the_bytes_of_what_is_stored(client):
    found = client.dynamic_quantize(X, axis=0, output_type="int4")
    assert (found.shape, found.dtype, found.nbytes) == (X.shape, found.y.dtype, X.size // 2 + 4 * len(X) + len(X) // 2)
    codes = client.quantize_embeddings(X, preset="pgvector")
    assert (codes.shape, codes.dtype, codes.nbytes) == ((6, 4), np.uint8, 24)
    assert client.dynamic_quantize(X, symmetric=True, output_type="int8").zero_point is None or not client.dynamic_quantize(
        X, symmetric=True, output_type="int8").zero_point.any()


def test_what_is_missing_or_not_possible_says_what_to_do(client, tmp_path):
    result = client.dynamic_quantize(X)
    for call, kind, words in (
        (lambda: quantd.save(tmp_path / "x.safetensors", result), TypeError, r"mapping, such as \{'w': result\}"),
        (lambda: quantd.save(tmp_path / "no" / "x.safetensors", {"w": result}), FileNotFoundError, "no/x.safetensors"),
        (lambda: client.quantize_embeddings(X, preset="sentence-transformers-int8"), TypeError, r"ranges=quantd\.calibrate"),
        (lambda: client.dynamic_quantize(X, symmetric=True, symmetry="symmetric"), TypeError, "one or the other"),
        (lambda: pickle.dumps(client), TypeError, "belongs to its process"),
    ):
        with pytest.raises(kind, match=words):
            call()
    (tmp_path / "y.safetensors").write_bytes(b"PK\x03\x04 anything but the header of a file of tensors")
    with pytest.raises(quantd.FormatError, match="not a .safetensors file"):
        quantd.load(tmp_path / "y.safetensors")
    client.close()
    with pytest.raises(ValueError, match="this client is closed"):
        client.info()


def test_dir_shows_what_is_for_users():
    assert set(dir(quantd)) == {*quantd.__all__, "__version__"}
