"""quantd.local() against a running server: for wrong requests the same errors, texts and fields. Bits: all other files, with --engine=local."""

import copy
import dataclasses
import pickle

import numpy as np
import pytest

import ask
from quantd_conformance import oracle_types as ot
import quantd

pytest.importorskip("quantd_core", reason="quantd-core is not installed: ./tests/run.sh engine builds it")


@pytest.fixture(scope="module")
def server(address):
    with quantd.Client(address, timeout=60) as c:
        yield c


@pytest.fixture(scope="module")
def local():
    with quantd.local(timeout=60) as c:
        yield c


def outcome(client, operation, *arguments, **options):
    """All results of a call, as values that can be compared: arrays by type, shape and bytes."""
    try:
        result = getattr(ask, operation)(client, *arguments, **options)
    except quantd.QuantdError as error:
        assert type(error).__module__ == "quantd.errors"
        return type(error), error.code, error.message, error.field_violations, error.reason, error.metadata, str(error)
    except Exception as error:
        return type(error), str(error)
    parts = {field.name: getattr(result, field.name) for field in dataclasses.fields(result) if field.name != "engine"}
    return {name: (v.dtype, v.shape, v.tobytes()) if isinstance(v, np.ndarray) else repr(v) for name, v in parts.items()}


def alike(server, local, operation, *arguments, **options):
    theirs = outcome(server, operation, *arguments, **options)
    ours = outcome(local, operation, *arguments, **options)
    assert ours == theirs, f"{operation}: {options}"
    return theirs


X = np.ones((4, 6), np.float32)
U8 = np.zeros((4, 6), np.uint8)
BAD = {
    "scale length": ("quantize", (X, np.ones(3, np.float32)), {}),
    "scale rank": ("quantize", (X, np.ones((1, 2, 3), np.float32)), {}),
    "scale groups": ("quantize", (X, np.ones((3, 6), np.float32)), {}),
    "scale is 0": ("quantize", (X, [1.0, 0.0, 1.0, 1.0]), dict(axis=0)),
    "scale is NaN": ("quantize", (X, np.nan), {}),
    "scale is infinite": ("quantize", (X, np.inf), {}),
    "scale is 0 in float16": ("quantize", (X, 1e-12), dict(precision=ot.FLOAT16)),
    "scale type": ("quantize", (X, np.ones((), np.uint8)), {}),
    "scale of no elements": ("quantize", (X, np.ones(0, np.float32)), {}),
    "x type": ("quantize", (U8, 1.0), {}),
    "x type back": ("dequantize", (X, 1.0), {}),
    "x type dynamic": ("dynamic_quantize", (U8,), {}),
    "axis": ("quantize", (X, np.ones(6, np.float32)), dict(axis=2)),
    "axis of a 0-D": ("quantize", (np.float32(1), np.ones(6, np.float32)), {}),
    "axis default": ("quantize", (np.ones(6, np.float32), np.ones(6, np.float32)), {}),
    "axis dynamic": ("dynamic_quantize", (X,), dict(axis=-3)),
    "axis is far": ("dynamic_quantize", (X,), dict(axis=-(2**63))),
    "block_size": ("quantize", (X, 1.0), dict(block_size=-1)),
    "block_size and scale": ("quantize", (X, np.ones((4, 2), np.float32)), dict(block_size=2)),
    "block_shape length": ("dynamic_quantize", (X,), dict(block_shape=[1])),
    "block_shape 0": ("dynamic_quantize", (X,), dict(block_shape=[0, 1])),
    "block_shape -2": ("dynamic_quantize", (X,), dict(block_shape=[1, -2])),
    "block_shape of many": ("dynamic_quantize", (X,), dict(block_shape=[1] * 65)),
    "block_shape and axis": ("dynamic_quantize", (X,), dict(block_shape=[1, 1], axis=0)),
    "block_shape and block_size": ("dynamic_quantize", (X,), dict(block_shape=[1, 1], block_size=2)),
    "zero_point shape": ("quantize", (X, 1.0, np.zeros(2, np.uint8)), {}),
    "zero_point type": ("quantize", (X, 1.0, np.zeros((), np.int8)), dict(output_type=ot.UINT8)),
    "zero_point of float8": ("quantize", (X, 1.0, ot.from_codes(np.array(3), ot.E5M2)), {}),
    "zero_point back": ("dequantize", (U8, 1.0, np.zeros((), np.int8)), {}),
    "output_type": ("quantize", (X, 1.0), dict(output_type=ot.FLOAT)),
    "output_type back": ("dequantize", (U8, 1.0), dict(output_type=ot.UINT8)),
    "output_type is missing": ("dequantize", (U8, np.ones((), ot.E8M0.dtype)), {}),
    "output_type dynamic": ("dynamic_quantize", (X,), dict(output_type=ot.INT32)),
    "precision": ("quantize", (X, 1.0), dict(precision=ot.UINT8)),
    "before rounding": ("quantize", (X, 1.0), dict(output_type=ot.E5M2, before_rounding=True)),
    "tensor_scale": ("dequantize", (U8, 1.0), dict(tensor_scale=np.ones(2, np.float32))),
    "tensor_scale type": ("dequantize", (U8, 1.0), dict(tensor_scale=np.float16(1))),
    "scale_type": ("dynamic_quantize", (X,), dict(scale_type=ot.INT32)),
    "scale_type and output_type": ("dynamic_quantize", (X,), dict(scale_type=ot.E8M0, output_type=ot.UINT4)),
    "NaN in x": ("dynamic_quantize", (np.float32([1, 2, np.nan]),), {}),
    "infinity in x": ("dynamic_quantize", (np.float32([[1, 2], [np.inf, 0]]),), dict(axis=0)),
    "scale underflows": ("dynamic_quantize", (np.float32([1e-45]),), {}),
    "scale overflows": ("dynamic_quantize", (np.float32([3e38, -3e38]),), dict(scale_type=ot.FLOAT16)),
    "float64": ("quantize", (X.astype(np.float64), 1.0), {}),
    "int64": ("dequantize", (U8.astype(np.int64), 1.0), {}),
    "objects": ("quantize", (np.array([None]), 1.0), {}),
    "text": ("quantize", ("abc", 1.0), {}),
    "None": ("quantize", (None, 1.0), {}),
    "no scale": ("quantize", (X, None), {}),
    "zero_point past uint8": ("quantize", (X, 1.0, 256), {}),
    "zero_point between": ("quantize", (X, 1.0, 1.5), {}),
    "wide": ("dequantize", ([1, 300], 1.0), {}),
}


@pytest.mark.parametrize("name", BAD)
def test_what_is_wrong(server, local, name):
    operation, arguments, options = BAD[name]
    found = alike(server, local, operation, *arguments, **options)
    assert isinstance(found, tuple), f"the server took it: {found}"


def test_wrong_choices(server, local):
    for options in (dict(zero_point_order="sideways"), dict(output_type="float7"), dict(output_type=99), dict(precision=object())):
        found = []
        for client in (server, local):
            with pytest.raises((TypeError, ValueError)) as caught:
                client.quantize(X, 1.0, **options)
            found.append((caught.type, str(caught.value)))
        assert found[0] == found[1]
    for client in (server, local):
        with pytest.raises(quantd.QuantdError) as caught:
            client.health("no.such.Service")
        assert (caught.value.code.name, caught.value.message) == ("NOT_FOUND", "this server has no such service")


def test_functions_of_the_module(local):
    """One engine, made when it is first needed; results without a client also use it."""
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 16)
    found = quantd.dynamic_quantize(x, axis=0, output_type="int8")
    assert quantd.quantize(x, 0.1, np.int8(3)).y.dtype == np.int8
    for function, arguments, options in (
        ("quantize", (x, 0.1, 3), {}), ("dequantize", (found,), {}), ("dynamic_quantize", (x,), {"axis": 0}),
        ("quantize_embeddings", (x,), {"preset": "vespa"}),
    ):
        ours, theirs = getattr(quantd, function)(*arguments, **options), getattr(local, function)(*arguments, **options)
        assert ours.y.tobytes() == theirs.y.tobytes() and ours.y.dtype == theirs.y.dtype
        assert getattr(quantd, function).__doc__ == getattr(quantd.Local, function).__doc__
    assert quantd.calibrate(x, axis=1).scale.shape == (16,) and quantd.in_process() is quantd.in_process() is found.engine


def test_results_without_a_client(server, tmp_path):
    x = np.linspace(-1, 1, 64, dtype=np.float32).reshape(4, 16)
    result = server.dynamic_quantize(x, axis=0, output_type="int4")
    quantd.save(tmp_path / "w.safetensors", {"w": result})
    for again in (pickle.loads(pickle.dumps(result)), copy.copy(result), quantd.load(tmp_path / "w.safetensors")["w"]):
        back = again.dequantize()
        assert back.y.tobytes() == result.dequantize().y.tobytes() and np.abs(back - x).max() < 0.2
