"""Data types: the contract's numbers, their numpy dtypes, and how elements are packed on the wire.

In numpy every tensor has its logical shape, with one item per element, whatever its width: int4, float6 and float4 arrays are those of
ml_dtypes. Packing to 6, 4 and 2 bits happens only here.
"""

import difflib
import enum
import math
import operator
import sys
from typing import Any, Dict, Iterable, Literal, Protocol, Sequence, Tuple, Type, Union, get_args

import ml_dtypes
import numpy as np
import numpy.typing as npt

from .errors import ArgumentError, wrong_type, wrong_value
from .foreign import Array, SupportsDLPack, as_numpy, leaves


class SharedMemory(Protocol):
    """A tensor in shared memory: a SharedTensor."""

    region: str
    byte_size: int

    def array(self) -> Array: ...


# Memory for y: in this process an array of y's shape and type, otherwise a tensor in shared memory; quantd.local() accepts both.
Out = Union[Array, SharedMemory]

# The types of tensor arguments. Python's numbers, and lists of them, are converted as described in as_array.
ArrayLike = Union[npt.ArrayLike, SupportsDLPack, SharedMemory]
# Type names of numpy and ml_dtypes, and of ONNX: for results, for their scales, and for the output of dequantize.
CodeName = Literal[
    "uint8", "int8", "uint16", "int16", "uint4", "int4", "uint2", "int2",
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
    "UINT8", "INT8", "UINT16", "INT16", "UINT4", "INT4", "UINT2", "INT2",
    "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT6E2M3", "FLOAT6E3M2", "FLOAT4E2M1",
]  # fmt: skip
FormatName = Literal["mxfp8", "mxfp8e5m2", "mxfp6e2m3", "mxfp6e3m2", "mxfp4", "mxint8", "nvfp4"]
FloatName = Literal["float32", "float16", "bfloat16", "FLOAT", "FLOAT16", "BFLOAT16"]
ScaleName = Union[FloatName, Literal["float8_e8m0fnu", "float8_e4m3fn", "FLOAT8E8M0", "FLOAT8E4M3FN"]]


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
    def dtype(self) -> "np.dtype[Any]":
        """The numpy dtype of arrays of this type."""
        return _DTYPES[self]

    @property
    def bits(self) -> int:
        """The bits of one element on the wire."""
        return _BITS.get(self, self.dtype.itemsize * 8)

    @property
    def is_integer(self) -> bool:
        return "INT" in self.name

    @property
    def is_signed(self) -> bool:
        return not self.name.startswith("UINT")

    @property
    def in_place(self) -> bool:
        """Whether numpy stores elements as on the wire, so that an array's memory can be sent."""
        return self.bits >= 8 and (sys.byteorder == "little" or self.bits == 8)

    def byte_size(self, elements: int) -> int:
        """The bytes of this number of elements on the wire."""
        return (elements * self.bits + 7) // 8

    def elements(self, shape: Sequence[int]) -> int:
        """The number of elements of a shape; ValueError for a negative length."""
        if any(length < 0 for length in shape):
            raise ValueError(f"{self.name} of shape {list(shape)}: no length may be negative")
        return math.prod(shape)

    def check(self, size: int, shape: Sequence[int]) -> int:
        """The number of elements of a shape; ValueError unless they take `size` bytes on the wire."""
        count = self.elements(shape)
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
_SENT_AS_THEY_ARE = frozenset(_AS_ON_THE_WIRE.values())  # in native order, in which dtypes are compared
_OF_DTYPE: Dict[Any, DataType] = {dtype: data_type for data_type, dtype in _DTYPES.items()}
_OF_NUMBER = frozenset(map(int, DataType))
_OF_NAME = {name: t for t in DataType for name in (t.name.lower(), t.dtype.name)}
# As torch, safetensors and papers call them; a name counts without "_", "-" and "data_type_".
_ALIASES = {
    "fp32": "float", "f32": "float", "half": "float16", "fp16": "float16", "f16": "float16", "bf16": "bfloat16",
    "fp8": "float8e4m3fn", "e4m3": "float8e4m3fn", "e4m3fn": "float8e4m3fn", "fp8e4m3": "float8e4m3fn", "fp8e4m3fn": "float8e4m3fn",
    "float8e4m3": "float8e4m3fn", "e4m3fnuz": "float8e4m3fnuz", "e5m2": "float8e5m2", "fp8e5m2": "float8e5m2",
    "e5m2fnuz": "float8e5m2fnuz", "e8m0": "float8e8m0", "e2m3": "float6e2m3", "fp6e2m3": "float6e2m3", "e3m2": "float6e3m2",
    "fp6e3m2": "float6e3m2", "fp4": "float4e2m1", "e2m1": "float4e2m1", "fp4e2m1": "float4e2m1",
}  # fmt: skip
# Types with a scale for each block of the last dimension: the type, the type of the scales, the size of a block.
_FORMATS = {
    "mxfp8": ("float8e4m3fn", "float8e8m0", 32), "mxfp8e5m2": ("float8e5m2", "float8e8m0", 32),
    "mxfp6e2m3": ("float6e2m3", "float8e8m0", 32), "mxfp6e3m2": ("float6e3m2", "float8e8m0", 32),
    "mxfp4": ("float4e2m1", "float8e8m0", 32), "mxint8": ("int8", "float8e8m0", 32), "nvfp4": ("float4e2m1", "float8e4m3fn", 16),
}  # fmt: skip


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "").replace("datatype", "", 1)


_OF_PLAIN_NAME = {**{_plain(name): t for name, t in _OF_NAME.items()}, **{alias: _OF_NAME[name] for alias, name in _ALIASES.items()}}

_Type = Union[DataType, int, "np.integer[Any]", "np.dtype[Any]", Type[Any]]
CodeTypeLike = Union[CodeName, FormatName, _Type]
FloatTypeLike = Union[FloatName, _Type]
ScaleTypeLike = Union[ScaleName, _Type]
DataTypeLike = Union[CodeName, ScaleName, Literal["int32", "INT32"], _Type]

_VALUES = "float32, float16, bfloat16 or int32"
_INTEGERS, _SMALL_FLOATS = (
    ", ".join(name for name in get_args(CodeName) if name.islower() and ("int" in name) == integer) for integer in (True, False))
_BY_USE = f"""
    values: {_VALUES}
    integer codes: {_INTEGERS}
    float codes: {_SMALL_FLOATS}
    scales: float32, float16, bfloat16, and of blocks float8_e8m0fnu or float8_e4m3fn"""
# The types that arguments accept; x of dequantize has codes.
_TAKES = {
    "x": f" {_VALUES}",
    "xs": f" {_VALUES}",
    "codes": f"\n    integers: {_INTEGERS}, int32\n    floats: {_SMALL_FLOATS}",
    "scale": " float32, float16, bfloat16, float8_e8m0fnu or float8_e4m3fn",
    "zero_point": f" the type of the codes: {_INTEGERS}; of float codes nothing but 0",
    "ranges": " float32",
    "tensor_scale": " float32",
}


def spelled_out(options: Dict[str, Any]) -> Dict[str, Any]:
    """The options of dynamic_quantize, with those that an output_type such as "mxfp8" or "nvfp4" means; what is given stays."""
    name = options.get("output_type")
    if not isinstance(name, str) or _plain(name) not in _FORMATS:
        return options
    output, scale, size = _FORMATS[_plain(name)]
    meant = {"scale_type": scale, "axis": -1, "block_size": size}
    given = {key: options.get(key) for key in meant}
    kept = {key: value for key, value in given.items() if value is not None and value != 0 or key == "axis" and value == 0}
    return {**options, **meant, **kept, "output_type": output}


def data_type(value: Union[DataTypeLike, str], name: str = "type") -> DataType:
    """The DataType of a DataType, its number or name ("int4", "FLOAT8E4M3FN", "float8_e4m3fn", "fp8") or a numpy dtype.

    `name`: the argument's, for errors.
    """
    if isinstance(value, DataType):
        return value
    if isinstance(value, str):
        plain = _plain(value)
        if plain in _OF_PLAIN_NAME:
            return _OF_PLAIN_NAME[plain]
        if plain in _FORMATS:
            raise wrong_value(name, f"{name}: {value!r} is a format of blocks, which dynamic_quantize takes as output_type")
        near = difflib.get_close_matches(value.lower(), [*_OF_NAME, *_ALIASES, *_FORMATS], 1)
        meant = f"; did you mean {near[0]!r}?" if near else "."
        raise wrong_value(name, f"{name}: unknown data type {value!r}{meant} There are{_BY_USE}")
    if isinstance(value, np.dtype) and value in _OF_DTYPE:
        return _OF_DTYPE[value]
    if isinstance(value, (int, np.integer)) and not isinstance(value, bool):
        value = operator.index(value)  # numpy's integers are numbers here, and np.dtype would use their own type
        if value in _OF_NUMBER:
            return DataType(value)
        raise wrong_value(name, f"{name}: unknown data type number {value!r}. There are{_BY_USE}")
    try:
        dtype = np.dtype(value).newbyteorder("=")
    except TypeError:
        raise wrong_type(name, f"{name} is {value!r}, must be a data type. There are{_BY_USE}") from None
    if dtype in _OF_DTYPE:
        return _OF_DTYPE[dtype]
    raise wrong_type(name, f"{name}: quantd has no type for {dtype}. There are{_BY_USE}")


def pack(array: Array) -> bytes:
    """The bytes of an array on the wire: little endian, row-major, 6-, 4- and 2-bit types packed lowest bits first."""
    return packed(array).tobytes()


def packed(array: Array) -> Array:
    """An array whose elements, row-major, are those bytes: `array` itself if its memory is already as on the wire."""
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


def _group(kind: DataType) -> "Tuple[int, int, np.dtype[Any]]":
    """The smallest number of elements of less than 8 bits that fills whole bytes, the number of those bytes, and a type for their bits."""
    size = kind.bits // math.gcd(kind.bits, 8)
    return 8 * size // kind.bits, size, np.dtype(np.uint8 if size == 1 else np.uint32)


def unpack(raw: "Union[bytes, bytearray, memoryview]", kind: DataTypeLike, shape: Sequence[int]) -> Array:
    """The array from this number of bytes of the wire; the inverse of pack. The array owns its memory and may be written."""
    kind = kind if isinstance(kind, DataType) else data_type(kind, "kind")
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
    if kind.is_integer and kind.is_signed:  # ml_dtypes stores int4 and int2 sign-extended in a byte
        sign = np.uint8(1 << (kind.bits - 1))
        codes = (codes ^ sign) - sign
    return codes.view(kind.dtype).reshape(shape)


def _unknown(value: Any, name: str, default: DataType, dtype: Any) -> ArgumentError:
    """The error for an array of a type that quantd lacks: how to convert it, and which types are accepted."""
    if str(getattr(value, "dtype", None)).startswith("torch."):
        how = f"{name}.to(torch.{default.dtype.name})"
    elif isinstance(value, np.ndarray):
        how = f"{name}.astype({default.dtype.type.__module__}.{default.dtype.name})"
    else:
        how = f"numpy.asarray({name}, {default.dtype.type.__module__}.{default.dtype.name})"
    takes = _TAKES.get("codes" if name == "x" and default.is_integer else name)
    text = f"{name}: quantd has no type for {dtype}. Convert it, as by {how}" + (f"; {name} takes{takes}" if takes else "")
    return wrong_type(name, text)


def as_array(value: Any, name: str, default: DataType) -> Array:
    """A numpy array of a type that quantd has, from an array of numpy or of any other library.

    A dtype decides: arrays, numpy's scalars, and lists with any of these keep their type; an array of a type that quantd
    lacks (float64, int64) is an error, and is never converted silently. Python's numbers, and lists of only those, have no such type
    and become `default`; so do scalars of float64 and int64, numpy's forms of Python's numbers. An integer that does not fit is an error.
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
        if array is None and isinstance(value, (list, tuple)):
            value, dtypes = leaves(value)
            if dtypes:
                default = _common(value, name, default, dtypes)
    except TypeError as error:
        if isinstance(error, ArgumentError):
            raise
        raise wrong_type(name, f"{name}: {error}") from None
    if array is not None:
        if array.dtype not in _OF_DTYPE and array.dtype.newbyteorder("=") not in _OF_DTYPE:
            raise _unknown(value, name, default, array.dtype)
        return array
    try:
        array = np.asarray(value)
        if array.dtype == object and all(isinstance(number, (int, float, np.generic, np.ndarray)) for number in array.flat):
            array = array.astype(np.float64)  # numpy's scalars together with Python's
    except (TypeError, ValueError, OverflowError):
        raise wrong_type(name, f"{name}: {_short(value)} is not a number, an array or a list of numbers of one shape") from None
    if array.size and array.dtype in _OF_DTYPE:  # of numpy's scalars
        return array
    if default.is_integer:
        if array.size and not np.issubdtype(array.dtype, np.integer):
            raise wrong_type(name, f"{name}: {_short(value)} must be integers for {default.name}")
        lowest, highest = integer_range(default)
        if array.size and (array.min() < lowest or array.max() > highest):
            raise wrong_value(name, f"{name}: {_short(value)} is outside {default.name}, {lowest} to {highest}")
    elif array.dtype.kind not in "iuf":  # nor complex, which would lose its imaginary part
        raise wrong_type(name, f"{name}: {_short(value)} is not a number, an array or a list of numbers")
    return array.astype(default.dtype)


def _common(value: Any, name: str, default: DataType, dtypes: Iterable[Any]) -> DataType:
    """The type of a list of arrays or numpy's scalars with these types: one of them. numpy would make int16 of int8 and uint8."""
    try:
        found = np.result_type(*dtypes)
    except TypeError:
        found = None
    if found not in dtypes:
        raise wrong_type(name, f"{name} holds {' and '.join(sorted(map(str, dtypes)))}, must hold elements of one type")
    if found not in _OF_DTYPE:
        raise _unknown(value, name, default, found)
    return _OF_DTYPE[found]


def described(array: Array) -> str:
    """A short description of an array."""
    return f"{array.dtype} {list(array.shape)}"


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 100 else f"{text[:97]}..."


def integer_range(kind: DataType) -> Tuple[int, int]:
    """Smallest and largest value of an integer type."""
    if kind.is_signed:
        return -(1 << (kind.bits - 1)), (1 << (kind.bits - 1)) - 1
    return 0, (1 << kind.bits) - 1


_RANGES = {kind: (*integer_range(kind), kind.dtype) for kind in DataType if kind.is_integer}


def to_message(tensor_class: Any, array: Array) -> Any:
    """The Tensor message of an array."""
    return tensor_class(data_type=int(data_type(array.dtype)), shape=array.shape, raw_data=pack(array))


def from_message(tensor: Any) -> Array:
    """The array of a Tensor message, in any of its forms."""
    raw, dtype = tensor.raw_data, _AS_ON_THE_WIRE.get(tensor.data_type)
    if raw and dtype is not None:  # most tensors of most calls: a few elements, in one step
        try:
            array = np.ndarray(tensor.shape[:], dtype, bytearray(raw))  # a slice: iterating over it is three times slower
            if array.nbytes == len(raw):
                return array
        except (TypeError, ValueError):
            pass  # the shape does not fit: what follows says how
    kind = DataType(tensor.data_type)
    form = tensor.WhichOneof("contents")
    if form == "float_values":
        return np.array(tensor.float_values.values, np.float32).astype(kind.dtype).reshape(tensor.shape)
    if form == "int_values":
        return np.array(tensor.int_values.values, np.int64).astype(kind.dtype).reshape(tensor.shape)
    return unpack(tensor.raw_data, kind, tensor.shape)
