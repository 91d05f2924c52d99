"""What is special to calls in this process. Their bits and errors: tests/conformance with --engine=local, and test_local.py there."""

import dataclasses
import resource

import grpc
import numpy as np
import pytest

import quantd
from support import same
from quantd import DataType, local

X = np.array([[-1.0, 0.0, 0.5], [1.0, 2.0, 300.0]], np.float32)


@pytest.fixture(scope="module")
def engine():
    return local(threads=2)


@pytest.mark.parametrize("number", [0.1, 3, -7, 1e-40, 2**31, float(np.finfo(np.float32).max)])
def test_python_numbers_are_float32(engine, number):
    x = np.float32([1, 2, 3])
    as_array = np.asarray(number).astype(np.float32)
    same(engine.dequantize(np.uint8([1, 2, 3]), number).y, engine.dequantize(np.uint8([1, 2, 3]), as_array).y)
    same(engine.quantize(x, number).y, engine.quantize(x, as_array).y)


def test_info_and_health(engine):
    info = engine.info()
    assert info.version == quantd.__version__ and info.target in info.supported_targets and info.threads == 2
    assert engine.health() == "SERVING"
    with pytest.raises(quantd.QuantdError) as caught:
        engine.health("no.such.Service")
    assert caught.value.code is grpc.StatusCode.NOT_FOUND


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
