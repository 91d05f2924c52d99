"""What is special to quantd.local(). Its bits: all other files, with --engine=local; its errors: client/python/tests/test_arguments.py."""

import copy
import pickle

import numpy as np
import pytest

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


def test_an_unknown_service(server, local):
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
