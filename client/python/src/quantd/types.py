"""Data types: the contract's numbers, their numpy dtypes, and how elements are packed on the wire.

In numpy every tensor has its logical shape, one element an item, whatever its width: int4, float6 and float4 arrays are those of
ml_dtypes. Packing to 6, 4 and 2 bits happens here and only here.
"""

import enum
import math
import sys
from typing import Any, Optional, Sequence, Union

import ml_dtypes
import numpy as np

from .foreign import as_numpy


class DataType(enum.IntEnum):
    """Element types, by the numbers of ONNX TensorProto.DataType."""

    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    FLOAT16 = 10
    BFLOAT16 = 16
    FLOAT8E4M3FN = 17
    FLOAT8E4M3FNUZ = 18
    FLOAT8E5M2 = 19
    FLOAT8E5M2FNUZ = 20
    UINT4 = 21
    INT4 = 22
    FLOAT4E2M1 = 23
    FLOAT8E8M0 = 24
    UINT2 = 25
    INT2 = 26
    FLOAT6E2M3 = 27
    FLOAT6E3M2 = 28

    @property
    def dtype(self) -> np.dtype:
        """The numpy dtype of arrays of this type."""
        return _DTYPES[self]

    @property
    def bits(self) -> int:
        """Bits that one element takes on the wire."""
        return _BITS.get(self, self.dtype.itemsize * 8)

    @property
    def is_integer(self) -> bool:
        return "INT" in self.name

    @property
    def is_signed(self) -> bool:
        return not self.name.startswith("UINT")

    @property
    def in_place(self) -> bool:
        """Whether numpy keeps elements as the wire does, so that an array's memory is what is sent."""
        return self.bits >= 8 and (sys.byteorder == "little" or self.bits == 8)

    def byte_size(self, elements: int) -> int:
        """Bytes that so many elements take on the wire."""
        return (elements * self.bits + 7) // 8

    def check(self, size: int, shape: Sequence[int]) -> int:
        """How many elements that shape has; ValueError unless they take `size` bytes on the wire."""
        if any(length < 0 for length in shape):
            raise ValueError(f"{self.name} of shape {list(shape)}: no length may be negative")
        count = math.prod(shape)
        if size != self.byte_size(count):
            raise ValueError(f"{self.name} of shape {list(shape)} takes {self.byte_size(count)} bytes, not {size}")
        return count


_DTYPES = {
    DataType.FLOAT: np.dtype(np.float32),
    DataType.UINT8: np.dtype(np.uint8),
    DataType.INT8: np.dtype(np.int8),
    DataType.UINT16: np.dtype(np.uint16),
    DataType.INT16: np.dtype(np.int16),
    DataType.INT32: np.dtype(np.int32),
    DataType.FLOAT16: np.dtype(np.float16),
    DataType.BFLOAT16: np.dtype(ml_dtypes.bfloat16),
    DataType.FLOAT8E4M3FN: np.dtype(ml_dtypes.float8_e4m3fn),
    DataType.FLOAT8E4M3FNUZ: np.dtype(ml_dtypes.float8_e4m3fnuz),
    DataType.FLOAT8E5M2: np.dtype(ml_dtypes.float8_e5m2),
    DataType.FLOAT8E5M2FNUZ: np.dtype(ml_dtypes.float8_e5m2fnuz),
    DataType.UINT4: np.dtype(ml_dtypes.uint4),
    DataType.INT4: np.dtype(ml_dtypes.int4),
    DataType.FLOAT4E2M1: np.dtype(ml_dtypes.float4_e2m1fn),
    DataType.FLOAT8E8M0: np.dtype(ml_dtypes.float8_e8m0fnu),
    DataType.UINT2: np.dtype(ml_dtypes.uint2),
    DataType.INT2: np.dtype(ml_dtypes.int2),
    DataType.FLOAT6E2M3: np.dtype(ml_dtypes.float6_e2m3fn),
    DataType.FLOAT6E3M2: np.dtype(ml_dtypes.float6_e3m2fn),
}
_BITS = {
    DataType.UINT4: 4,
    DataType.INT4: 4,
    DataType.FLOAT4E2M1: 4,
    DataType.UINT2: 2,
    DataType.INT2: 2,
    DataType.FLOAT6E2M3: 6,
    DataType.FLOAT6E3M2: 6,
}
_AS_ON_THE_WIRE = {int(t): dtype for t, dtype in _DTYPES.items() if t.in_place}
_SENT_AS_THEY_ARE = frozenset(_AS_ON_THE_WIRE.values())  # in native order, which dtypes are compared with
_OF_DTYPE = {dtype: data_type for data_type, dtype in _DTYPES.items()}
_OF_NAME = {name: t for t in DataType for name in (t.name.lower(), t.dtype.name)}

DataTypeLike = Union[DataType, int, str, np.dtype, type]


def data_type(value: DataTypeLike) -> DataType:
    """The DataType of a DataType, its number or name ("int4", "FLOAT8E4M3FN", "float8_e4m3fn") or a numpy dtype."""
    if isinstance(value, np.dtype) and value in _OF_DTYPE:
        return _OF_DTYPE[value]
    if isinstance(value, int):
        return DataType(value)
    if isinstance(value, str):
        if value.lower() in _OF_NAME:
            return _OF_NAME[value.lower()]
        raise ValueError(f"unknown data type {value!r}; one of {', '.join(sorted(_OF_NAME))}")
    dtype = np.dtype(value).newbyteorder("=")
    if dtype in _OF_DTYPE:
        return _OF_DTYPE[dtype]
    raise TypeError(f"quantd has no type for {dtype}; it takes {', '.join(d.name for d in _OF_DTYPE)}")


def pack(array: np.ndarray) -> bytes:
    """The bytes of an array on the wire: little endian, row-major, 6-, 4- and 2-bit types packed lowest bits first."""
    return packed(array).tobytes()


def packed(array: np.ndarray) -> np.ndarray:
    """An array whose elements, row-major, are those bytes: `array` itself where its memory is as the wire wants it."""
    if array.dtype in _SENT_AS_THEY_ARE:
        return array
    kind = data_type(array.dtype)
    if kind.bits >= 8:
        if kind.bits == 8 or (kind.in_place and array.dtype.byteorder != ">"):
            return array
        native = np.ascontiguousarray(array.astype(kind.dtype))
        return native.view(f"u{kind.bits // 8}").astype(f"<u{kind.bits // 8}")
    elements, size, word = _group(kind)
    codes = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
    count = codes.size
    if count % elements:
        codes = np.concatenate([codes, np.zeros(elements - count % elements, np.uint8)])
    codes = codes.reshape(-1, elements) & np.uint8((1 << kind.bits) - 1)
    out = codes[:, 0].astype(word)
    for i in range(1, elements):
        out |= codes[:, i].astype(word) << word.type(i * kind.bits)
    if size == 1:
        return out
    return out.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :size].reshape(-1)[: kind.byte_size(count)]


def _group(kind: DataType) -> "tuple[int, int, np.dtype]":
    """The fewest elements of less than 8 bits that fill whole bytes, how many bytes those are, and what holds their bits."""
    size = kind.bits // math.gcd(kind.bits, 8)
    return 8 * size // kind.bits, size, np.dtype(np.uint8 if size == 1 else np.uint32)


def unpack(raw: bytes, kind: DataType, shape: Sequence[int]) -> np.ndarray:
    """The array of so many bytes from the wire; the reverse of pack. The array owns its memory and may be written."""
    count = kind.check(len(raw), shape)
    if kind.bits >= 8:
        data = np.frombuffer(bytearray(raw), dtype=np.uint8)
        if sys.byteorder == "big" and kind.bits > 8:
            data = data.view(f"<u{kind.bits // 8}").astype(f"u{kind.bits // 8}")
        return data.view(kind.dtype).reshape(shape)
    elements, size, word = _group(kind)
    groups = np.frombuffer(raw, dtype=np.uint8)
    if size > 1:
        words = np.zeros(((count + elements - 1) // elements, 4), np.uint8)
        groups = np.concatenate([groups, np.zeros(-groups.size % size, np.uint8)])
        words[:, :size] = groups.reshape(-1, size)
        groups = words.view("<u4").reshape(-1).astype(word)
    codes = np.empty((groups.size, elements), np.uint8)
    for i in range(elements):
        codes[:, i] = (groups >> word.type(i * kind.bits)) & word.type((1 << kind.bits) - 1)
    codes = codes.reshape(-1)[:count]
    if kind.is_integer and kind.is_signed:  # ml_dtypes keeps int4 and int2 sign-extended in a byte
        sign = np.uint8(1 << (kind.bits - 1))
        codes = (codes ^ sign) - sign
    return codes.view(kind.dtype).reshape(shape)


def _hint(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    if str(dtype).startswith("torch."):
        return ". Convert it, for example with .cpu() or .to(torch.float32)"
    return ". Convert it, for example with .astype(numpy.float32)" if dtype is not None else ""


def as_array(value: Any, name: str, default: DataType) -> np.ndarray:
    """A numpy array of a type that quantd has, of an array of numpy or of any other library.

    Arrays, numpy's scalars and lists of them keep their type; an array of one that quantd lacks (float64, int64) is a TypeError,
    never converted silently. Python's numbers, lists of them, and scalars of float64 and int64 have no such type and become `default`;
    an integer that does not fit is a ValueError.
    """
    if type(value) is np.ndarray and value.dtype in _OF_DTYPE:
        return value
    if type(value) is float and default is DataType.FLOAT:
        return np.array(value, np.float32)
    if type(value) is int and default in _RANGES:
        lowest, highest, dtype = _RANGES[default]
        if lowest <= value <= highest:
            return np.array(value, dtype)
    try:
        array = as_numpy(value)
        if array is not None:
            data_type(array.dtype)
            return array
    except TypeError as error:
        raise TypeError(f"{name}: {error}{_hint(value)}") from None
    array = np.asarray(value)
    if array.size and array.dtype in _OF_DTYPE:  # of numpy's scalars
        return array
    if default.is_integer:
        if array.size and not np.issubdtype(array.dtype, np.integer):
            raise TypeError(f"{name}: {value!r} must be integers for {default.name}")
        lowest, highest = integer_range(default)
        if array.size and (array.min() < lowest or array.max() > highest):
            raise ValueError(f"{name}: {value!r} is outside {default.name}, {lowest} to {highest}")
    elif not np.issubdtype(array.dtype, np.number):
        raise TypeError(f"{name}: {value!r} is not a number, an array or a list of numbers")
    return array.astype(default.dtype)


def integer_range(kind: DataType) -> "tuple[int, int]":
    """Smallest and largest value of an integer type."""
    if kind.is_signed:
        return -(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1
    return 0, (1 << kind.bits) - 1


_RANGES = {kind: (*integer_range(kind), kind.dtype) for kind in DataType if kind.is_integer}


def to_message(tensor_class, array: np.ndarray):
    """The wire's Tensor of an array."""
    return tensor_class(data_type=int(data_type(array.dtype)), shape=array.shape, raw_data=pack(array))


def from_message(tensor) -> Optional[np.ndarray]:
    """The array of a Tensor of the wire, in any of its forms."""
    raw, dtype = tensor.raw_data, _AS_ON_THE_WIRE.get(tensor.data_type)
    if raw and dtype is not None:  # most tensors of most calls: a few elements, in one step
        try:
            array = np.ndarray(tuple(tensor.shape), dtype, bytearray(raw))
        except (TypeError, ValueError):
            array = None
        if array is not None and array.nbytes == len(raw):
            return array
    kind = DataType(tensor.data_type)
    form = tensor.WhichOneof("contents")
    if form == "float_values":
        return np.array(tensor.float_values.values, np.float32).astype(kind.dtype).reshape(tensor.shape)
    if form == "int_values":
        return np.array(tensor.int_values.values, np.int64).astype(kind.dtype).reshape(tensor.shape)
    return unpack(tensor.raw_data, kind, tensor.shape)
