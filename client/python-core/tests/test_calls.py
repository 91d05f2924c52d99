"""Arguments arrive, answers and errors come back: a call behaves as with Client, without a server."""

import dataclasses
import inspect
import resource

import ml_dtypes
import grpc
import numpy as np
import pytest

import quantd
from support import OUTPUTS, codes, same
from quantd import DataType, local

X = np.array([[-1.0, 0.0, 0.5], [1.0, 2.0, 300.0]], np.float32)


@pytest.fixture(scope="module")
def engine():
    return local(threads=2)


def test_quantize(engine):
    answer = engine.quantize(X, 0.5, 10)
    assert answer.y.dtype == np.uint8 and answer.error is None
    assert answer.y.tolist() == [[8, 10, 11], [12, 14, 255]]
    assert answer.y.flags.owndata and answer.y.flags.writeable and answer.y.flags.c_contiguous


def test_every_argument_of_quantize(engine):
    assert engine.quantize(X, np.float32([1, 2]), output_type="int8", axis=0).y.tolist() == [[-1, 0, 0], [0, 1, 127]]
    assert engine.quantize(X, np.ones((2, 2), np.float32), block_size=2, output_type=np.int8).y.dtype == np.int8
    assert engine.quantize(X, np.ones((1, 2), np.float32), block_shape=[-1, 2]).y[1, 2] == 255
    assert engine.quantize(X, np.ones((1, 2), np.float32), block_shape=(n for n in (-1, 2))).y[1, 2] == 255
    nan = engine.quantize(np.float32([1e9]), 1.0, output_type="float8_e4m3fn", saturate=False).y
    assert nan.dtype == ml_dtypes.float8_e4m3fn and np.isnan(nan.astype(np.float32)).all()
    before = engine.quantize(
        np.float32([3]), 2.0, np.array(1, np.int32), output_type="uint8", zero_point_order="before_rounding")
    assert before.y.tolist() == [2] and engine.quantize(np.float32([3]), 2.0, 1).y.tolist() == [3]
    wide = engine.quantize(np.float16([4.71]), np.float16(0.3), output_type="int16", precision="float32").y
    half = engine.quantize(np.float16([2.25]), np.float16(0.3), output_type="int16").y
    assert wide.tolist() == [16] and half.tolist() == [8]


def test_error_reports(engine):
    error = engine.quantize(X, 0.5, 10, report_error=True).error
    assert error.saturated_elements == 1 and error.non_finite_elements == 0 and error.max_absolute_error == 177.5
    assert error.mean_squared_error == pytest.approx(177.5**2 / 6)
    exact = engine.dynamic_quantize(np.float32([0, 255]), report_error=True).error
    assert exact.sqnr_db == np.inf and exact.mean_squared_error == 0


def test_dequantize(engine):
    given = np.array([0, 10, 255], np.uint8)
    assert engine.dequantize(given, 0.5, 10).y.tolist() == [-5, 0, 122.5]
    half = engine.dequantize(given, 0.5, output_type="bfloat16").y
    assert half.dtype == ml_dtypes.bfloat16 and half.astype(np.float32).tolist() == [0, 5, 127.5]
    assert engine.dequantize(given, 0.5, tensor_scale=2.0).y.tolist() == [0, 10, 255]
    assert engine.dequantize([0, 10, 255], 0.5).y.tolist() == [0, 5, 127.5]


def test_dynamic_quantize(engine):
    answer = engine.dynamic_quantize(np.float32([-1, 0, 4]))
    assert answer.scale == np.float32(5) / np.float32(255) and answer.scale.shape == () and answer.tensor_scale is None
    assert answer.zero_point == 51 and answer.zero_point.shape == () and answer.y.tolist() == [0, 51, 255]
    symmetric = engine.dynamic_quantize(X, output_type="int4", axis=0, symmetry="symmetric")
    assert symmetric.zero_point is None and symmetric.scale.shape == (2,) and symmetric.y.dtype == ml_dtypes.int4
    assert engine.dynamic_quantize(np.float32([1, np.inf]), non_finite="ignore").y.tolist() == [255, 255]
    four = engine.dynamic_quantize(X, output_type="uint4", axis=1)
    assert four.zero_point.dtype == ml_dtypes.uint4 and four.zero_point.shape == (3,)


def test_microscaling(engine):
    x = np.linspace(-7, 7, 64, dtype=np.float32).reshape(2, 32)
    mx = engine.dynamic_quantize(x, output_type="float4_e2m1fn", block_size=32, scale_type="float8_e8m0fnu")
    assert mx.scale.dtype == ml_dtypes.float8_e8m0fnu and mx.scale.shape == (2, 1)
    back = engine.dequantize(mx.y, mx.scale, block_size=32, output_type="float32").y
    assert np.abs(back - x).max() <= 1
    nv = engine.dynamic_quantize(x, output_type="float4_e2m1fn", block_size=16, scale_type="float8_e4m3fn")
    assert nv.tensor_scale.dtype == np.float32 and nv.tensor_scale.shape == () and nv.scale.shape == (2, 2)


@pytest.mark.parametrize("kind", OUTPUTS, ids=lambda kind: kind.name)
@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 5, 1023, 1 << 20, (1 << 20) + 3])
def test_codes_go_through_unharmed(engine, kind, count):
    """x of every width, packed and in parts, and back: quantizing the dequantized values gives the codes again."""
    x = codes((count,), kind, seed=count)
    wide = engine.dequantize(x, 1.0).y
    expected = x.astype(np.float32)
    assert wide.dtype == np.float32
    np.testing.assert_array_equal(wide, expected)
    if kind.is_integer:
        same(engine.quantize(wide, 1.0, output_type=kind).y, x)


@pytest.mark.parametrize("number", [0.1, 3, -7, 1e-40, 2**31, float(np.finfo(np.float32).max)])
def test_python_numbers_are_float32(engine, number):
    x = np.float32([1, 2, 3])
    as_array = np.asarray(number).astype(np.float32)
    same(engine.dequantize(np.uint8([1, 2, 3]), number).y, engine.dequantize(np.uint8([1, 2, 3]), as_array).y)
    same(engine.quantize(x, number).y, engine.quantize(x, as_array).y)


def test_numbers_that_do_not_fit(engine):
    for output_type, zero_point in (("uint8", 256), ("uint8", -1), ("int4", 8), ("int2", -3)):
        with pytest.raises(ValueError, match="zero_point"):
            engine.quantize(X, 1.0, zero_point, output_type=output_type)
    assert engine.quantize(X, 1.0, -8, output_type="int4").y[0, 1] == -8
    with pytest.raises(TypeError, match="zero_point"):
        engine.quantize(X, 1.0, 1.5)
    with pytest.raises(ValueError, match="axis is 9{30}"):
        engine.quantize(X, [1.0, 1.0], axis=int("9" * 30))
    for wrong in (dict(axis=0.5), dict(block_size=None), dict(block_shape=["a"]), dict(block_shape=3)):
        with pytest.raises(TypeError):
            engine.quantize(X, 1.0, **wrong)
    assert engine.quantize(X, [1.0, 1.0], axis=np.int64(0)).y.shape == X.shape


def test_errors_have_code_message_and_fields(engine):
    with pytest.raises(quantd.InvalidArgumentError) as caught:
        engine.quantize(X, np.ones(2, np.float32))
    error = caught.value
    assert isinstance(error, quantd.QuantdError) and isinstance(error, ValueError)
    assert error.code is grpc.StatusCode.INVALID_ARGUMENT and error.reason == "INVALID_ARGUMENT"
    assert error.message == "scale has 2 elements, x has 3 along axis 1" and error.field == "scale"
    assert error.field_violations == (quantd.FieldViolation("scale", error.message),)
    with pytest.raises(quantd.InvalidArgumentError, match="NaN|nan") as caught:
        engine.dynamic_quantize(np.float32([1, np.nan]))
    assert caught.value.field == "x"


def test_wrong_choices(engine):
    with pytest.raises(ValueError, match="'before_rounding'"):
        engine.quantize(X, 1.0, zero_point_order="sideways")
    with pytest.raises(ValueError, match="unknown data type"):
        engine.quantize(X, 1.0, output_type="float7")
    with pytest.raises(TypeError, match=r"x: .*float64.*\.astype"):
        engine.quantize(X.astype(np.float64), 1.0)
    with pytest.raises(TypeError, match="scale"):
        engine.quantize(X, None)


def test_stream(engine):
    with engine.stream(max_in_flight=4) as stream:
        futures = [stream.quantize(np.full(8, i, np.float32), 1.0) for i in range(50)]
        bad = stream.quantize(X, 0.0)
        back = stream.dequantize(np.uint8([1, 2]), 2.0)
        assert stream.dynamic_quantize(X, axis=0).result().scale.shape == (2,)
    assert all((future.result(0).y == i).all() for i, future in enumerate(futures))
    assert back.result(0).y.tolist() == [2, 4]
    with pytest.raises(quantd.InvalidArgumentError) as caught:
        bad.result(0)
    assert caught.value.field == "scale"
    with pytest.raises(ValueError, match="closed"):
        stream.quantize(X, 1.0)
    with pytest.raises(ValueError, match="max_in_flight is 0"):
        engine.stream(max_in_flight=0)
    with engine.stream(timeout=0) as late, pytest.raises(quantd.DeadlineExceededError):
        late.quantize(X, 1.0).result(0)
    with engine.stream() as stream, pytest.raises(TypeError):  # an object without such a form is not an item
        stream.quantize(X.astype(np.float64), 1.0)


def test_info_and_health(engine):
    info = engine.info()
    assert info.version == quantd.__version__ and info.target in info.supported_targets and info.threads == 2
    assert engine.health() == "SERVING"
    with pytest.raises(quantd.QuantdError) as caught:
        engine.health("no.such.Service")
    assert caught.value.code is grpc.StatusCode.NOT_FOUND


def test_functions_of_the_module():
    assert quantd.quantize(X, 0.5, 10).y.tolist() == [[8, 10, 11], [12, 14, 255]]
    assert quantd.dequantize(np.uint8([4]), 0.5, threads=1).y.tolist() == [2]
    assert "axis" in inspect.signature(quantd.dynamic_quantize).parameters
    with pytest.raises(AttributeError, match="frobnicate"):
        quantd.frobnicate
    assert all(hasattr(quantd, name) for name in quantd.__all__)


def test_results_are_what_the_constructor_makes(engine):
    """For speed, results are made without their constructors: every field must exist, and nothing else."""
    for result in (engine.quantize(X, 0.5), engine.dynamic_quantize(X, axis=0)):
        assert all(hasattr(result, field.name) for field in dataclasses.fields(result))
        assert repr(result).startswith(f"<{type(result).__name__} uint8 [")
        with pytest.raises(dataclasses.FrozenInstanceError):
            result.y = None


def test_results_keep_what_the_call_was_given(engine):
    scale, zero_point = np.float32([0.5, 2]), np.uint8([1, 2])
    result = engine.quantize(X, scale, zero_point, axis=0)
    scale[:], zero_point[:] = 7, 7
    assert result.scale.tolist() == [0.5, 2] and result.zero_point.tolist() == [1, 2]
    assert result.axis == 0 and result.input_type is DataType.FLOAT


def test_memory_goes_back():
    """No answer, argument or error is kept: a thousand calls with 1 MiB each do not take a gigabyte."""
    engine, x = local(threads=2), np.ones(1 << 20, np.float32)

    def calls():
        for _ in range(300):
            engine.dynamic_quantize(x, output_type="int4")
            engine.dequantize(np.ones(1 << 20, np.uint8), [1.0])
            with pytest.raises(quantd.InvalidArgumentError):
                engine.quantize(x[::2], [1.0, 2.0], axis=0)

    calls()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    calls()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 << 10  # KiB
