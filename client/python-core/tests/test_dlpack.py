"""Tensors of other libraries: a hand-made exporter of every type and fault; torch and JAX if they are installed."""

import ctypes
import gc
import weakref

import ml_dtypes
import numpy as np
import pytest

from support import floats, same
from quantd_core import Engine

engine = Engine(threads=2)

CODES = {
    "float32": (2, 32), "float16": (2, 16), "bfloat16": (4, 16), "int32": (0, 32), "int16": (0, 16), "int8": (0, 8),
    "uint16": (1, 16), "uint8": (1, 8), "float8_e4m3fn": (10, 8), "float8_e4m3fnuz": (11, 8), "float8_e5m2": (12, 8),
    "float8_e5m2fnuz": (13, 8), "float8_e8m0fnu": (14, 8), "int4": (0, 4), "uint4": (1, 4), "int2": (0, 2), "uint2": (1, 2),
    "float6_e2m3fn": (15, 6), "float6_e3m2fn": (16, 6), "float4_e2m1fn": (17, 4),
}


class Tensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)), ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("tensor", Tensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [
        ("major", ctypes.c_uint32), ("minor", ctypes.c_uint32), ("context", ctypes.c_void_p), ("deleter", DELETER),
        ("flags", ctypes.c_uint64), ("tensor", Tensor),
    ]


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype, new_capsule.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]


class Exporter:
    """A tensor that is exported as its arguments say, right or wrong; counts exports and releases."""

    def __init__(self, array, *, versioned=True, row_major=False, flags=4, major=1, device=(1, 0), capsule=None, **fields):
        self.array, self.versioned, self.device, self.name = array, versioned, device, capsule
        code, width = CODES.get(array.dtype.name, (2, array.dtype.itemsize * 8))
        self.shape = (ctypes.c_int64 * max(array.ndim, 1))(*array.shape)
        self.strides = (ctypes.c_int64 * max(array.ndim, 1))(*(s // array.itemsize for s in array.strides))
        tensor = Tensor(
            data=array.ctypes.data, device_type=device[0], device_id=device[1], ndim=array.ndim, code=code, bits=width, lanes=1,
            shape=self.shape, strides=None if row_major else self.strides)
        for name, value in fields.items():
            setattr(tensor, name, value)
        self.exported = self.released = 0
        self.deleter = DELETER(self._release)
        if versioned:
            self.managed = Versioned(major=major, minor=0, deleter=self.deleter, flags=flags, tensor=tensor)
        else:
            self.managed = Managed(tensor=tensor, deleter=self.deleter)

    def _release(self, _):
        self.released += 1

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, **options):
        if options and not self.versioned:
            raise TypeError("no such argument")
        self.exported += 1
        name = self.name or (b"dltensor_versioned" if self.versioned else b"dltensor")
        return new_capsule(ctypes.addressof(self.managed), name, None)


# Since version 1, types narrower than a byte have a form of their own, with a byte per element.
@pytest.mark.parametrize("name, versioned", [(n, v) for n in CODES for v in (True, False) if v or CODES[n][1] >= 8])
def test_every_type(name, versioned):
    array = floats((6, 40)).astype(getattr(ml_dtypes, name, name))
    exporter = Exporter(array, versioned=versioned)
    if name in ("float32", "float16", "bfloat16", "int32"):
        same(engine.quantize(exporter, 0.5).y, engine.quantize(array, 0.5).y)
    elif name == "float8_e8m0fnu":
        codes = np.ones((6, 40), np.int8)
        options = dict(block_shape=[1, 1], output_type="float32")
        same(engine.dequantize(codes, exporter, **options).y, engine.dequantize(codes, array, **options).y)
    else:
        same(engine.dequantize(exporter, 0.5).y, engine.dequantize(array, 0.5).y)
    gc.collect()
    assert (exporter.exported, exporter.released) == (1, 1)


def test_strides_and_offsets():
    array = floats((8, 12))
    for view in (array.T, array[::2, ::3], array[::-1], np.broadcast_to(array[0], (5, 12)), array[3], array[2, 3, ...]):
        exporter = Exporter(view)
        same(engine.quantize(exporter, 0.5).y, engine.quantize(view, 0.5).y)
        assert exporter.released == 1
    same(engine.quantize(Exporter(array, row_major=True), 0.5).y, engine.quantize(array, 0.5).y)
    moved = Exporter(array[1:], data=array.ctypes.data, byte_offset=12 * 4)
    same(engine.quantize(moved, 0.5).y, engine.quantize(array[1:], 0.5).y)
    nothing = Exporter(np.zeros((0, 3), np.float32), data=None)
    assert engine.quantize(nothing, 0.5).y.shape == (0, 3)


def test_no_copy():
    """A write while a call has the tensor is visible: it is read in place, at the exported address."""
    array = np.zeros(1 << 16, np.float32)
    from quantd_core import _native

    view = _native.from_dlpack(Exporter(array), "x")
    assert np.shares_memory(view, array) and view.ctypes.data == array.ctypes.data
    array[7] = 3
    assert view[7] == 3


def test_the_tensor_lives_as_long_as_its_array():
    from quantd_core import _native

    exporter = Exporter(np.zeros(10, np.float32))
    view = _native.from_dlpack(exporter, "x")
    assert exporter.released == 0
    part = view[2:]
    del view
    gc.collect()
    assert exporter.released == 0
    del part
    gc.collect()
    assert exporter.released == 1


def test_other_devices_are_refused_before_they_copy():
    for device in ((2, 0), (2, 3), (4, 0), (8, 0), (10, 1), (14, 0)):
        exporter = Exporter(np.zeros(3, np.float32), device=device)
        with pytest.raises(TypeError, match=rf"x is on DLPack device {device[0]}, number {device[1]}, .*\.cpu\(\)"):
            engine.quantize(exporter, 0.5)
        assert exporter.exported == 0
    # One that claims to be on the CPU, and hands over a pointer to another device.
    with pytest.raises(TypeError, match="scale is on DLPack device 2"):
        engine.quantize(np.float32([1]), Exporter(np.ones((), np.float32), device_type=2))
    assert engine.quantize(Exporter(np.float32([1]), device=(3, 0)), 0.5).y.tolist() == [2]  # pinned host memory


def test_lies_are_refused():
    array = np.zeros((2, 3), np.float32)
    negative = (ctypes.c_int64 * 2)(-1, 3)
    wide = (ctypes.c_int64 * 2)(1 << 61, 3)
    far = (ctypes.c_int64 * 2)(1 << 62, 1)
    for fields, text in (
        (dict(ndim=-1), "-1 dimensions"),
        (dict(ndim=1000), "1000 dimensions"),
        (dict(shape=None), "dimensions"),
        (dict(shape=negative), "-1"),
        (dict(shape=wide), "2\\^62"),
        (dict(strides=far), "stride"),
        (dict(data=None), "address 0"),
        (dict(major=7), "DLPack 7"),
        (dict(capsule=b"something_else"), "no DLPack capsule"),
        (dict(capsule=b"used_dltensor_versioned"), "no DLPack capsule"),
    ):
        exporter = Exporter(array, **fields)
        with pytest.raises(TypeError, match=text):
            engine.quantize(exporter, 0.5)
        gc.collect()
        assert exporter.released == ("capsule" not in fields), fields
    with pytest.raises(TypeError, match="4 bits that share bytes"):
        engine.dequantize(Exporter(np.zeros(4, ml_dtypes.int4), flags=0), 0.5)
    with pytest.raises(TypeError, match="4 bits that share bytes"):
        engine.dequantize(Exporter(np.zeros(4, ml_dtypes.float4_e2m1fn), lanes=2), 0.5)


def test_types_that_quantd_lacks():
    exporter = Exporter(np.zeros(3, np.float64))
    with pytest.raises(TypeError):
        engine.quantize(exporter, 0.5)
    gc.collect()
    assert exporter.released == exporter.exported > 0

    class Raises:
        def __dlpack_device__(self):
            return (1, 0)

        def __dlpack__(self, **_):
            raise BufferError("has a gradient")

    with pytest.raises(TypeError, match="x: has a gradient") as caught:
        engine.quantize(Raises(), 0.5)
    assert caught.value.field == "x"
    for device in (None, (), ("a", "b"), (1,)):
        broken = Exporter(np.zeros(3, np.float32), device=(1, 0))
        broken.device = device
        with pytest.raises((TypeError, ValueError, IndexError)):
            engine.quantize(broken, 0.5)


def test_as_every_argument():
    x, scale, zero = np.uint8([[1, 2], [3, 4]]), np.float32([0.5, 2]), np.uint8([1, 2])
    expected = engine.dequantize(x, scale, zero, axis=0, tensor_scale=np.float32(3)).y
    ours = engine.dequantize(
        Exporter(x), Exporter(scale), Exporter(zero), axis=0, tensor_scale=Exporter(np.array(3, np.float32))).y
    same(ours, expected)


def test_torch():
    torch = pytest.importorskip("torch")
    x = torch.randn(33, 65)
    for name in ("float32", "float16", "bfloat16"):
        tensor = x.to(getattr(torch, name))
        array = x.numpy().astype(getattr(ml_dtypes, name, name))
        same(engine.dynamic_quantize(tensor).y, engine.dynamic_quantize(array).y)
        same(engine.dynamic_quantize(tensor.T).y, engine.dynamic_quantize(array.T).y)
    assert engine.quantize(torch.ones(3, requires_grad=True), 0.5).y.tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="float64"):
        engine.quantize(torch.ones(3, dtype=torch.float64), 0.5)


def test_jax():
    jax = pytest.importorskip("jax")
    x = np.asarray(floats((33, 65)))
    for name in ("float32", "float16", "bfloat16", "int32"):
        array = x.astype(getattr(ml_dtypes, name, name))
        same(engine.dynamic_quantize(jax.numpy.asarray(array)).y, engine.dynamic_quantize(array).y)
    for name in ("float8_e4m3fn", "float8_e5m2", "int8"):
        array = x.astype(getattr(ml_dtypes, name, name))
        same(engine.dequantize(jax.numpy.asarray(array), 0.5).y, engine.dequantize(array, 0.5).y)


def test_numpy_scalars_and_arrays_keep_their_own_way():
    assert engine.quantize(np.float32([3]), np.float32(0.5)).y.tolist() == [6]
    reference = weakref.ref(array := np.ones(10, np.float32))
    engine.quantize(array, 0.5)
    del array
    assert reference() is None
