"""Arrays of other libraries, and what is refused."""

import ml_dtypes
import numpy as np
import pytest

from quantd import DataType
from quantd.types import as_array

X = np.linspace(-2, 2, 24, dtype=np.float32).reshape(4, 6)


class WithDlpack:
    """An array that supports DLPack and nothing else."""

    def __init__(self, array):
        self._array = array

    def __dlpack__(self, **options):
        return self._array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


class WithArray:
    def __init__(self, array):
        self._array = array

    def __array__(self, dtype=None, copy=None):
        return self._array


@pytest.mark.parametrize("wrap", [WithDlpack, WithArray])
def test_anything_that_is_an_array(client, wrap):
    array = as_array(wrap(X), "x", DataType.FLOAT)
    assert array.dtype == np.float32 and np.shares_memory(array, X)
    np.testing.assert_array_equal(client.quantize(wrap(X), wrap(np.float32([0.5]))).y, client.quantize(X, 0.5).y)
    with pytest.raises(TypeError, match="x: .*float64"):
        as_array(wrap(X.astype(np.float64)), "x", DataType.FLOAT)


def test_an_array_that_cannot_be_handed_over():
    class Elsewhere:
        def __dlpack__(self, **options):
            raise BufferError("it is on a GPU")

        def __dlpack_device__(self):
            return 2, 0

    with pytest.raises(TypeError, match="x: .*Elsewhere is not an array in this memory"):
        as_array(Elsewhere(), "x", DataType.FLOAT)


def test_torch(client):
    torch = pytest.importorskip("torch")
    x = torch.from_numpy(X.copy())
    expected = client.dynamic_quantize(X, axis=0)
    np.testing.assert_array_equal(client.dynamic_quantize(x, axis=0).y, expected.y)
    np.testing.assert_array_equal(client.dynamic_quantize(x.requires_grad_(), axis=0).y, expected.y)
    np.testing.assert_array_equal(client.dynamic_quantize(torch.nn.Parameter(x.detach()).T, axis=1).y, expected.y.T)
    assert np.shares_memory(as_array(x, "x", DataType.FLOAT), x.detach().numpy())
    half = x.detach().to(torch.bfloat16)
    array = as_array(half, "x", DataType.FLOAT)
    assert array.dtype == ml_dtypes.bfloat16
    np.testing.assert_array_equal(array.astype(np.float32), half.float().numpy())
    np.testing.assert_array_equal(as_array(half.T, "x", DataType.FLOAT).astype(np.float32), half.T.float().numpy())
    assert as_array(half[0, 0], "x", DataType.FLOAT).shape == ()
    result = client.dynamic_quantize(half)
    assert result.dequantize().y.dtype == ml_dtypes.bfloat16
    for name in ("float8_e4m3fn", "float8_e5m2"):
        codes = x.detach().to(getattr(torch, name))
        assert client.dequantize(codes, 1.0).y.tolist() == codes.float().tolist()
    with pytest.raises(TypeError, match=r"x: .*float64.*\.to\(torch\.float32\)"):
        client.dynamic_quantize(x.detach().double())
    with pytest.raises(TypeError, match=r"x: .*on meta.*\.cpu\(\)"):
        client.dynamic_quantize(torch.ones(3, device="meta"))
    torch.from_numpy(client.quantize(x, 0.5).y)  # it warns of memory that is not writable


def test_torch_is_not_imported():
    import subprocess
    import sys

    subprocess.run([sys.executable, "-c", "import sys, quantd; assert 'torch' not in sys.modules"], check=True)
