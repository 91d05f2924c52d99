"""Wrong arguments: an error always names its field, whichever code finds it, and is the same from a server and in this process."""

import asyncio
import pickle

import ml_dtypes
import numpy as np
import pytest

import quantd
from quantd import calibration, choices, embeddings

X, CODES = np.ones((2, 3), np.float32), np.ones((2, 3), np.uint8)
DOUBLES = X.astype(np.float64)
MASKED = np.ma.masked_array(X, mask=[[0, 1, 0], [0, 0, 0]])
HUGE = 1 << 70
TYPE, VALUE, SERVER = quantd.errors.ArgumentTypeError, quantd.ArgumentError, quantd.InvalidArgumentError
# Operation, arguments, options, the exception, and its field.
CASES = [
    ("quantize", (X, None), {}, TYPE, "scale"),
    ("quantize", (DOUBLES, 1.0), {}, TYPE, "x"),
    ("quantize", ([[1], [1, 2]], 1.0), {}, TYPE, "x"),
    ("quantize", (MASKED, 1.0), {}, TYPE, "x"),
    ("dynamic_quantize", (MASKED,), {}, TYPE, "x"),
    ("quantize", (X, MASKED), {"block_shape": [1, 1]}, TYPE, "scale"),
    ("quantize", (X, "a"), {}, TYPE, "scale"),
    ("quantize", (X, 1.0, -1), {}, VALUE, "zero_point"),
    ("quantize", (X, 1.0, 1.5), {}, TYPE, "zero_point"),
    ("quantize", (X, 1.0, np.array(3)), {}, TYPE, "zero_point"),
    ("quantize", (X, 1.0, np.int32(1)), {}, SERVER, "zero_point"),
    ("quantize", (X, 1.0, np.ones(3, np.uint8)), {}, SERVER, "zero_point"),
    ("quantize", (CODES, 1.0), {}, SERVER, "x"),
    ("quantize", (X, 0.0), {}, SERVER, "scale"),
    ("quantize", (X, np.ones(7, np.float32)), {}, SERVER, "scale"),
    ("quantize", (X, 1.0), {"output_type": "int7"}, VALUE, "output_type"),
    ("quantize", (X, 1.0), {"output_type": 99}, VALUE, "output_type"),
    ("quantize", (X, 1.0), {"output_type": object()}, TYPE, "output_type"),
    ("quantize", (X, 1.0), {"output_type": np.float64}, TYPE, "output_type"),
    ("quantize", (X, 1.0), {"output_type": "float32"}, SERVER, "output_type"),
    ("quantize", (X, 1.0), {"axis": 1.5}, TYPE, "axis"),
    ("quantize", (X, 1.0), {"axis": True}, TYPE, "axis"),
    ("quantize", (X, 1.0), {"axis": HUGE}, VALUE, "axis"),
    ("quantize", (X, 1.0), {"block_size": "a"}, TYPE, "block_size"),
    ("quantize", (X, 1.0), {"block_size": HUGE}, VALUE, "block_size"),
    ("quantize", (X, 1.0), {"block_size": -1}, SERVER, "block_size"),
    ("quantize", (X, 1.0), {"block_shape": 3}, TYPE, "block_shape"),
    ("quantize", (X, 1.0), {"block_shape": ["a"]}, TYPE, "block_shape"),
    ("quantize", (X, 1.0), {"block_shape": [1]}, SERVER, "block_shape"),
    ("quantize", (X, 1.0), {"precision": "x"}, VALUE, "precision"),
    ("quantize", (X, 1.0), {"precision": "int8"}, SERVER, "precision"),
    ("quantize", (X, 1.0), {"zero_point_order": "x"}, VALUE, "zero_point_order"),
    ("quantize", (X, 1.0), {"out": 3}, TYPE, "out"),
    ("quantize", (X, 1.0), {"saturate": "no"}, TYPE, "saturate"),
    ("quantize", (X, 1.0), {"saturate": 2}, TYPE, "saturate"),
    ("quantize", (X, 1.0), {"report_error": "no"}, TYPE, "report_error"),
    ("quantize", (X, 1.0), {"timeout": "1"}, TYPE, "timeout"),
    ("quantize", (X, 1.0), {"timeout": True}, TYPE, "timeout"),
    ("quantize", (X, 1.0), {"timeout": float("nan")}, VALUE, "timeout"),
    ("dequantize", (CODES,), {}, TYPE, "scale"),
    ("dequantize", (CODES.astype(np.int64), 1.0), {}, TYPE, "x"),
    ("dequantize", (None, 1.0), {}, TYPE, "x"),
    ("dequantize", (X, 1.0), {}, SERVER, "x"),
    ("dequantize", (CODES, 1.0, 300), {}, VALUE, "zero_point"),
    ("dequantize", (CODES, 1.0, np.int8(1)), {}, SERVER, "zero_point"),
    ("dequantize", (CODES, 1.0), {"tensor_scale": "a"}, TYPE, "tensor_scale"),
    ("dequantize", (CODES, 1.0), {"tensor_scale": np.float16(1)}, SERVER, "tensor_scale"),
    ("dequantize", (CODES, 1.0), {"output_type": "int8"}, SERVER, "output_type"),
    ("dequantize", (quantd.Quantized(CODES, np.float32(1)), 1.0), {}, TYPE, "scale"),
    ("dequantize", (quantd.Quantized(CODES, np.float32(1)),), {"axis": 0}, TYPE, "axis"),
    ("dynamic_quantize", (quantd.Quantized(CODES, np.float32(1)),), {}, TYPE, "x"),
    ("dynamic_quantize", (X * np.nan,), {}, SERVER, "x"),
    ("dynamic_quantize", (X,), {"saturate": [True]}, TYPE, "saturate"),
    ("dynamic_quantize", (X,), {"report_error": X}, TYPE, "report_error"),
    ("dynamic_quantize", (X,), {"scale_type": "x"}, VALUE, "scale_type"),
    ("dynamic_quantize", (X,), {"scale_type": "int8"}, SERVER, "scale_type"),
    ("dynamic_quantize", (X,), {"symmetry": "x"}, VALUE, "symmetry"),
    ("dynamic_quantize", (X,), {"non_finite": "x"}, VALUE, "non_finite"),
    ("dynamic_quantize", (X,), {"axis": 0, "block_shape": [1, 1]}, SERVER, "block_shape"),
    ("dynamic_quantize", (np.float32(1),), {"axis": 0}, SERVER, "axis"),
    ("quantize_embeddings", (X,), {}, SERVER, "recipe"),
    ("quantize_embeddings", (X,), {"preset": "x"}, VALUE, "preset"),
    ("quantize_embeddings", (X,), {"preset": ["x"]}, VALUE, "preset"),
    ("quantize_embeddings", (X,), {"preset": "pgvector", "recipe": "bits"}, TYPE, "recipe"),
    ("quantize_embeddings", (X,), {"recipe": "x"}, VALUE, "recipe"),
    ("quantize_embeddings", (X,), {"recipe": "ranges"}, SERVER, "ranges"),
    ("quantize_embeddings", (X,), {"recipe": "bits", "dimensions": "a"}, TYPE, "dimensions"),
    ("quantize_embeddings", (X,), {"recipe": "bits", "dimensions": 9}, SERVER, "dimensions"),
    ("quantize_embeddings", (X,), {"recipe": "bits", "bit_order": "x"}, VALUE, "bit_order"),
    ("quantize_embeddings", (X,), {"recipe": "bits", "normalize": "no"}, TYPE, "normalize"),
    ("quantize_embeddings", (X,), {"recipe": "bits", "report_error": True}, SERVER, "report_error"),
    ("shared", (DOUBLES,), {}, TYPE, "x"),
    ("shared_empty", ((2,), "x"), {}, VALUE, "dtype"),
    ("shared_empty", ("a", "int8"), {}, TYPE, "shape"),
]


@pytest.fixture(scope="module", params=["server", "local"])
def engine(request, tmp_path_factory):
    if request.param == "local":
        pytest.importorskip("quantd_core")
        with quantd.local(shared_memory_dir=str(tmp_path_factory.mktemp("shared"))) as local:
            yield local
    else:
        client = request.getfixturevalue("small")
        client._shared_memory_dir = str(tmp_path_factory.mktemp("shared"))
        yield client
        client._shared_memory_dir = None


def outcome(engine, operation, arguments, options):
    with pytest.raises(quantd.QuantdError) as caught:
        getattr(engine, operation)(*arguments, **options)
    return caught.value


@pytest.mark.parametrize("operation,arguments,options,kind,field", CASES, ids=lambda value: value if isinstance(value, str) else "")
def test_the_field_is_named(engine, small, operation, arguments, options, kind, field):
    error = outcome(engine, operation, arguments, options)
    if kind is SERVER and engine is not small:
        assert str(error) == str(outcome(small, operation, arguments, options))
    assert type(error) is kind and error.field == field and error.field_violations[0].field == field
    assert field in error.message or error.code is quantd.errors.StatusCode.NOT_FOUND
    assert type(pickle.loads(pickle.dumps(error))) is kind
    if isinstance(error, quantd.ArgumentError):
        assert str(error) == error.message and isinstance(error, ValueError)


def test_yes_and_no_have_forms(engine):
    """numpy bools, 1 and 0 are flags; None counts as not given, from a server and in this process alike."""
    x = np.float32([300.0, 1.0])
    for value in (True, np.True_, 1, None):
        assert engine.quantize(x, 1.0, saturate=value, output_type="float8_e5m2fnuz").y[0] == 320
    x *= 1e6
    for value in (False, np.False_, 0):
        assert np.isnan(engine.quantize(x, 1.0, saturate=value, output_type="float8_e5m2fnuz").y[0])
    assert engine.quantize(x, 1.0, report_error=np.True_).error and not engine.quantize(x, 1.0, report_error=None).error


@pytest.mark.parametrize("options,kind,field", [
    ({"address": 5}, TYPE, "address"), ({"address": ""}, VALUE, "address"), ({"timeout": "1"}, TYPE, "timeout"),
    ({"retry": "no"}, TYPE, "retry"), ({"tls_cert": "a"}, VALUE, "tls_key"), ({"tls_ca": __file__}, VALUE, "tls_ca"),
    ({"auth_token_file": "a", "allow_insecure_token": "no", "address": "there"}, TYPE, "allow_insecure_token"),
    ({"auth_token_file": "a", "address": "there"}, VALUE, "auth_token_file"),
], ids=str)
def test_so_it_is_where_a_client_is_made(monkeypatch, options, kind, field):
    monkeypatch.delenv("QUANTD_ADDRESS", raising=False)
    for made in (quantd.Client, quantd.AsyncClient):
        with pytest.raises(kind) as caught:
            made(**options)
        assert caught.value.field == field and field in str(caught.value)


def test_so_it_is_beside_calls(tmp_path):
    for call, kind, field in (
        (lambda: quantd.unpack(b"\x01", "int9", (2,)), VALUE, "kind"),
        (lambda: quantd.save(tmp_path / "x.safetensors", {"a": 5}), TYPE, "tensors"),
        (lambda: quantd.Client("127.0.0.1:1").shared(X), VALUE, "shared_memory_dir"),
    ):
        with pytest.raises(kind) as caught:
            call()
        assert caught.value.field == field
    assert quantd.unpack(b"\x21", "int4", (2,)).tolist() == [1, 2]


@pytest.mark.parametrize("options, kind", [
    ({"max_in_flight": 0}, VALUE), ({"max_in_flight": "a"}, TYPE), ({"timeout": "a"}, TYPE)], ids=str)
def test_so_it_is_where_a_stream_is_made(large, options, kind):
    with pytest.raises(kind) as caught:
        large.stream(**options)
    assert caught.value.field in options


def test_streams_raise_what_is_not_sent(large):
    with large.stream() as stream:
        with pytest.raises(quantd.ArgumentError) as caught:
            stream.quantize(DOUBLES, 1.0)
        assert caught.value.field == "x"
        for wrong in ({"axix": 1}, {"timeout": 1}):
            with pytest.raises(TypeError, match=next(iter(wrong))):
                stream.quantize(X, 1.0, **wrong)
        with pytest.raises(quantd.InvalidArgumentError) as caught:
            stream.quantize(X, 0.0).result(30)
        assert caught.value.field == "scale"


def test_asyncio_too(small):
    async def call():
        async with quantd.AsyncClient(small.address) as client:
            with pytest.raises(TypeError) as caught:
                client.quantize(DOUBLES, 1.0)
            assert caught.value.field == "x"
            with pytest.raises(quantd.InvalidArgumentError) as caught:
                await client.quantize(X, 0.0)
            assert caught.value.field == "scale"

    asyncio.run(asyncio.wait_for(call(), 60))


def texts(*arguments, **options):
    with pytest.raises(quantd.ArgumentError) as caught:
        quantd.requests.make(*arguments, **options)
    return str(caught.value)


def test_float64_says_how_it_is_converted():
    assert "x.astype(numpy.float32)" in texts("quantize", DOUBLES, 1.0)
    assert "scale.astype(numpy.float32)" in texts("quantize", X, DOUBLES)
    assert "numpy.asarray(x, numpy.float32)" in texts("dynamic_quantize", [DOUBLES])
    assert "zero_point.astype(ml_dtypes.int4)" in texts("quantize", X, 1.0, np.zeros(3, np.int64), output_type="int4")
    assert "x.astype(numpy.uint8)" in texts("dequantize", np.zeros(3, np.int64), 1.0)


def test_a_wrong_type_lists_types_by_their_use():
    text = texts("quantize", X, 1.0, output_type="flot16")
    assert "output_type: unknown data type 'flot16'; did you mean 'float16'?" in text
    lines = text.splitlines()
    assert len(lines) == 5 and max(map(len, lines)) < 140
    assert lines[1].strip() == "values: float32, float16, bfloat16 or int32"
    assert [line.strip().partition(":")[0] for line in lines[1:]] == ["values", "integer codes", "float codes", "scales"]
    for name in (kind.dtype.name for kind in quantd.DataType):
        assert name in text
    assert len(texts("quantize", DOUBLES, 1.0)) < 160
    assert np.dtype(ml_dtypes.float6_e2m3fn).name in texts("dequantize", DOUBLES, 1.0)


def test_choices_in_other_spellings_and_misspelt():
    assert choices.choice("Min-Max", calibration.METHODS, "method") == choices.choice("min_max", calibration.METHODS, "method")
    for call, meant in ((lambda: choices.choice("percentle", calibration.METHODS, "method"), "percentile"),
                        (lambda: embeddings.chosen("pgvectr", {}), "pgvector"),
                        (lambda: quantd.data_type("fp9"), "fp8"), (lambda: quantd.data_type("mxfp9"), "mxfp8")):
        with pytest.raises(ValueError, match=f"did you mean '{meant}'"):
            call()
