"""Shared tensors with quantd.local(): a program that uses them with a server also runs without one, with the same errors."""

import numpy as np
import pytest

from quantd_conformance import oracle_types as ot
import quantd
from generate import rng

pytest.importorskip("quantd_core", reason="quantd-core is not installed: ./tests/run.sh engine builds it")
X = np.array([[-1.0, 0.0, 0.5], [1.0, 2.0, 300.0]], np.float32)


@pytest.fixture()
def local(tmp_path):
    with quantd.local(shared_memory_dir=str(tmp_path)) as client:
        yield client
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("t", ot.OUTPUTS, ids=lambda t: t.name)
def test_in_place_of_arrays(local, t):
    x = rng("shared", t.name).standard_normal((33, 65)).astype(np.float32)
    expected = local.dynamic_quantize(x, output_type=t.number)
    with local.shared(x) as sx, local.shared(expected.scale) as scale, local.shared_empty(x.shape, t.dtype) as sy:
        answer = local.dynamic_quantize(sx, output_type=t.number, out=sy)
        assert answer.y.dtype == t.dtype and answer.y.tobytes() == expected.y.tobytes()
        assert np.shares_memory(answer.y, sy.array()) == (t.bits >= 8)
        assert sy.array().tobytes() == expected.y.tobytes()
        back = local.dequantize(sy, scale, expected.zero_point).y
        assert back.tobytes() == local.dequantize(expected.y, expected.scale, expected.zero_point).y.tobytes()


def test_errors_are_those_of_the_server(local):
    with local.shared_empty((5,), "uint8") as small, pytest.raises(quantd.InvalidArgumentError) as caught:
        local.quantize(X, 0.5, out=small)
    assert caught.value.message == "output.byte_size is 5, y takes 6 bytes" and caught.value.field == "output.byte_size"
    with local.shared(X) as x, pytest.raises(quantd.InvalidArgumentError) as caught:
        local.quantize(x, 0.5, out=x)
    assert caught.value.field == "output"
    assert caught.value.message == f"output, 6 bytes of region '{x.region}', overlaps the 24 bytes of x"
    for call in (lambda: local.quantize(x, 0.5), lambda: local.quantize(X, 0.5, out=x)):
        with pytest.raises(ValueError, match="closed"):
            call()
