"""load and save: quantized tensors in .safetensors files, as client/FORMAT.md describes them and quantctl reads and writes them."""

import json
import math
import os
from typing import Any, Dict, Mapping, Optional, Tuple, Union

import ml_dtypes
import numpy as np

from .errors import wrong_type, wrong_value
from .foreign import Array, as_numpy
from .results import Quantized, QuantizedResult
from .safetensors import BITS, METADATA, MOST_DIMENSIONS, FormatError, Reader, header_of, is_text, lengths, parse_json, replaced
from .types import DataType, data_type, described, packed, unpack

_KEY = "quantd"  # of __metadata__
_VERSION = 1
_DTYPES = {
    "F64": np.dtype("<f8"), "F32": np.dtype("<f4"), "F16": np.dtype("<f2"), "BF16": np.dtype(ml_dtypes.bfloat16),
    "I64": np.dtype("<i8"), "I32": np.dtype("<i4"), "I16": np.dtype("<i2"), "I8": np.dtype("i1"),
    "U64": np.dtype("<u8"), "U32": np.dtype("<u4"), "U16": np.dtype("<u2"), "U8": np.dtype("u1"),
    "C64": np.dtype("<c8"), "BOOL": np.dtype("?"), "F4": np.dtype(ml_dtypes.float4_e2m1fn),
    "F6_E2M3": np.dtype(ml_dtypes.float6_e2m3fn), "F6_E3M2": np.dtype(ml_dtypes.float6_e3m2fn),
    "F8_E4M3": np.dtype(ml_dtypes.float8_e4m3fn), "F8_E4M3FNUZ": np.dtype(ml_dtypes.float8_e4m3fnuz),
    "F8_E5M2": np.dtype(ml_dtypes.float8_e5m2), "F8_E5M2FNUZ": np.dtype(ml_dtypes.float8_e5m2fnuz),
    "F8_E8M0": np.dtype(ml_dtypes.float8_e8m0fnu),
}  # fmt: skip
_NAMES = {dtype: name for name, dtype in _DTYPES.items()}
_PARTS = {"y": "", "scale": "_scale", "zero_point": "_zero_point", "tensor_scale": "_tensor_scale"}
# Of a description, as quantctl reads it.
_MOST_QUANTIZED, _MOST_DIMENSIONS = 100_000, 1_000_000
_OPTIONAL = ("zero_point", "tensor_scale")
_INPUT_TYPES = (DataType.FLOAT, DataType.FLOAT16, DataType.BFLOAT16, DataType.INT32)

Tensor = Union[Array, QuantizedResult]


class TensorFile(Dict[str, Tensor]):
    """The tensors of a file by name, arrays and quantized ones, and its metadata: texts by their keys."""

    def __init__(self, tensors: Mapping[str, Tensor] = (), metadata: Optional[Mapping[str, str]] = None):
        super().__init__(tensors)
        self.metadata: Dict[str, str] = dict(metadata or {})


def _array(reader: Reader, name: str) -> Array:
    entry = reader.entries[name]
    dtype = _DTYPES[entry.dtype]
    data = reader.read(name)
    if BITS[entry.dtype] < 8:
        return unpack(data, data_type(dtype), entry.shape)
    if entry.dtype == "BOOL" and data.translate(None, b"\x00\x01"):
        raise FormatError(f"tensor {name!r} is BOOL and has bytes that are neither 0 nor 1")
    array = np.ndarray(entry.shape, dtype, data)
    return array if dtype.isnative else array.astype(dtype.newbyteorder("="))


def _part(reader: Reader, name: str, what: str, value: Any) -> Array:
    """The array of a part of quantized tensor `name`, according to the description."""
    where = f"{what} of quantized tensor {name!r}"
    if not isinstance(value, dict):
        raise FormatError(f"{where} is a {type(value).__name__}, must be an object")
    tensor, kind = value.get("tensor"), value.get("type")
    if not isinstance(tensor, str) or tensor not in reader.entries:
        raise FormatError(f"{where} is in tensor {tensor!r}, which the file does not have")
    kinds = [t for t in DataType if t.name.lower() == kind]
    if not kinds:
        raise FormatError(f"{where} has type {kind!r}, which is not known here")
    shape = lengths(value.get("shape"), f"the shape of {where}")
    entry = reader.entries[tensor]
    if entry.end - entry.begin != kinds[0].byte_size(math.prod(shape)):
        raise FormatError(
            f"{where}, {kind} {list(shape)}, takes {kinds[0].byte_size(math.prod(shape))} bytes, "
            f"tensor {tensor!r} has {entry.end - entry.begin}"
        )
    return unpack(reader.read(tensor), kinds[0], shape)


def _integer(value: Any, what: str) -> int:
    if type(value) is not int or not -(1 << 63) <= value < 1 << 63:
        raise FormatError(f"{what} is {value!r}, must be an integer")
    return value


def _quantized(reader: Reader, name: str, value: Any) -> Tuple[Quantized, "set[str]"]:
    """A quantized tensor, and the names of its parts."""
    if not isinstance(value, dict):
        raise FormatError(f"the description of {name!r} is a {type(value).__name__}, must be an object")
    parts = {what: value[what] for what in _PARTS if what in value or what not in _OPTIONAL and _missing(name, what)}
    arrays = {what: _part(reader, name, what, part) for what, part in parts.items()}
    input_types = [t for t in _INPUT_TYPES if t.name.lower() == value.get("input_type")]
    if not input_types:
        raise FormatError(f"input_type of quantized tensor {name!r} is {value.get('input_type')!r}, which is not known here")
    original = value.get("original_type")
    if "original_type" in value and not isinstance(original, str):
        raise FormatError(f"original_type of quantized tensor {name!r} is {original!r}, must be a text")
    shape = value.get("block_shape", [])
    if not isinstance(shape, list):
        raise FormatError(f"block_shape of quantized tensor {name!r} is {shape!r}, must be a list")
    shape = tuple(_integer(length, f"a length in block_shape of quantized tensor {name!r}") for length in shape)
    result = Quantized(
        arrays["y"],
        scale=arrays["scale"],
        zero_point=arrays.get("zero_point"),
        tensor_scale=arrays.get("tensor_scale"),
        axis=_integer(value["axis"], f"axis of quantized tensor {name!r}") if "axis" in value else None,
        block_size=_integer(value.get("block_size", 0), f"block_size of quantized tensor {name!r}"),
        block_shape=shape or None,
        input_type=input_types[0],
        original_type=original,
    )
    return result, {part["tensor"] for part in parts.values()}


def _missing(name: str, what: str) -> bool:
    raise FormatError(f"quantized tensor {name!r} has no {what}")


def load(path: Union[str, "os.PathLike[str]"]) -> TensorFile:
    """Read a .safetensors file, with the quantized tensors that quantctl or `save` put there.

    Parameters
    ----------
    path : str or os.PathLike
        The file. All of it is read into memory; every value in it is checked before it is used.

    Returns
    -------
    TensorFile
        A dict of tensors by name: a Quantized for each quantized one (use ``client.dequantize(result)``), an array of its own
        for each other one; and ``metadata``, a dict of texts.

    Raises
    ------
    FormatError
        For a file that is wrong in any way; a subclass of ValueError.
    OSError
        When the file can't be read.
    """
    path = os.fspath(path)
    try:
        with open(path, "rb") as file:
            return _load(Reader(file))
    except (ValueError, OverflowError) as error:  # FormatError, and numpy's errors for shapes beyond its own limits
        raise FormatError(f"{path}: {error}") from None


def _load(reader: Reader) -> TensorFile:
    metadata = dict(reader.metadata)
    found: Dict[str, Tensor] = {}
    used: "set[str]" = set()
    if _KEY in metadata:
        description = parse_json(metadata.pop(_KEY), f"{_KEY} in {METADATA}")
        if description.get("version") != _VERSION or isinstance(description.get("version"), bool):
            raise FormatError(f"its description has version {description.get('version')!r}, this is of version {_VERSION}")
        tensors = description.get("tensors")
        if not isinstance(tensors, dict):
            raise FormatError("its description has no tensors")
        for name, value in tensors.items():
            found[name], parts = _quantized(reader, name, value)
            used |= parts
    for name in reader.entries:
        if name in used:
            continue
        if name in found:
            raise FormatError(f"{name!r} is the name of a quantized tensor, and of one that is none of its parts")
        found[name] = _array(reader, name)
    return TensorFile(found, metadata)


def _stored(name: str, array: Array, is_part: bool) -> Tuple[str, Tuple[int, ...], Array]:
    """dtype and shape of an array in the file, and its bytes. is_part: of a quantized tensor, whose description repeats dtype and shape."""
    dtype = _NAMES.get(array.dtype.newbyteorder("<") if array.dtype.byteorder == ">" else array.dtype)
    if array.dtype.byteorder == ">":
        array = array.astype(array.dtype.newbyteorder("<"))
    kind = next((t for t in DataType if t.dtype == array.dtype), None)
    if kind is not None and kind.bits < 8:
        whole = array.ndim and array.shape[-1] * kind.bits % 8 == 0  # no byte is shared by two rows
        data = packed(array)
        if dtype is not None and (whole or not is_part):
            return dtype, array.shape, data
        return "U8", (data.size,), data
    if dtype is None:
        raise wrong_type("tensors", f"tensor {name!r} is {array.dtype}, which has no dtype in safetensors")
    return dtype, array.shape, np.ascontiguousarray(array).reshape(-1).view(np.uint8)


def _described(name: str, result: QuantizedResult) -> Tuple[Dict[str, Any], Dict[str, Array]]:
    """The description of a quantized tensor, and its parts by their names in the file."""
    kind = result.input_type if result.input_type is not None else DataType.FLOAT
    entry: Dict[str, Any] = {"input_type": kind.name.lower()}
    if result.original_type is not None:
        entry["original_type"] = result.original_type
    if result.axis is not None:
        entry["axis"] = int(result.axis)
    if result.block_size:
        entry["block_size"] = int(result.block_size)
    if result.block_shape:
        entry["block_shape"] = [int(length) for length in result.block_shape]
    arrays = {}
    for what, suffix in _PARTS.items():
        value = getattr(result, what)
        if value is None:
            continue
        array = np.asarray(value)
        part = next((t for t in DataType if t.dtype == array.dtype.newbyteorder("=")), None)
        if part is None:
            raise wrong_type("tensors", f"{what} of quantized tensor {name!r} is {array.dtype}, which quantd has no type for")
        entry[what] = {"tensor": name + suffix, "type": part.name.lower(), "shape": list(array.shape)}
        arrays[name + suffix] = array
    return entry, arrays


def _check_size(description: Mapping[str, Dict[str, Any]]) -> None:
    """Raises ValueError for more than quantctl reads."""
    shapes = (shape for entry in description.values() for shape in (*(entry[part]["shape"] for part in _PARTS if part in entry),
                                                                   entry.get("block_shape", ())))
    for size, most, what in ((len(description), _MOST_QUANTIZED, "quantized tensors"),
                             (sum(map(len, shapes)), _MOST_DIMENSIONS, "dimensions of quantized tensors")):  # fmt: skip
        if size > most:
            raise wrong_value("tensors", f"tensors has {size} {what}, {most} are the most in a file")


def save(
    path: Union[str, "os.PathLike[str]"],
    tensors: Mapping[str, Any],
    *,
    metadata: Optional[Mapping[str, str]] = None,
    overwrite: bool = False,
) -> None:
    """Write arrays and quantized tensors to a .safetensors file that `load` and quantctl read.

    The file is written under another name, flushed to the disk, and then renamed: `path` never has a part of it.

    Parameters
    ----------
    path : str or os.PathLike
        The file.
    tensors : mapping of str to array_like, Quantized or DynamicQuantized
        What to write. A result ``w`` becomes a tensor ``w`` with its y, ``w_scale`` with its scale, and so on.
    metadata : mapping of str to str, optional
        More texts for the file; without it those of a TensorFile.
    overwrite : bool, optional
        Whether a file that exists is replaced.

    Raises
    ------
    FileExistsError
        When the file exists and overwrite is not set.
    TypeError, ValueError
        For tensors that the file can't represent, or whose names clash.
    OSError
        When the file can't be written; nothing is left of it then, and a file that existed is unchanged.
    """
    path = os.fsdecode(path)
    if not hasattr(tensors, "items"):
        raise wrong_type("tensors", f"tensors is a {type(tensors).__name__}, must be a mapping, such as {{'w': result}}")
    texts = dict(metadata if metadata is not None else getattr(tensors, "metadata", {}))
    if _KEY in texts or not all(isinstance(part, str) and is_text(part) for item in texts.items() for part in item):
        raise wrong_value("metadata", f"metadata must be texts by keys other than {_KEY!r}")
    description, arrays, plain = {}, {}, set()
    for name, value in tensors.items():
        if not isinstance(name, str) or name == METADATA or not is_text(name):
            raise wrong_value("tensors", f"{name!r} can't be the name of a tensor")
        if isinstance(value, QuantizedResult):
            description[name], parts = _described(name, value)
        else:
            array = as_numpy(value)
            if array is None:
                raise wrong_type("tensors", f"tensor {name!r} is a {type(value).__name__}, must be an array or a result")
            if array.dtype.itemsize == 1 and array.dtype not in _NAMES:
                raise wrong_type("tensors", f"tensor {name!r} is {array.dtype}, which only a quantized tensor of a file can be")
            kind = next((t for t in DataType if t.dtype == array.dtype), None)
            if kind is not None and array.size * kind.bits % 8:
                text = f"tensor {name!r} is {described(array)}, and ends within a byte, as only a quantized tensor may"
                raise wrong_type("tensors", text)
            plain.add(name)
            parts = {name: array}
        for part, array in parts.items():
            if part in arrays:
                raise wrong_value("tensors", f"two tensors would be named {part!r}")
            if array.ndim > MOST_DIMENSIONS:
                raise wrong_value("tensors", f"tensor {part!r} has {array.ndim} dimensions, {MOST_DIMENSIONS} are the most in a file")
            arrays[part] = array
    if description:
        _check_size(description)
        text = json.dumps({"version": _VERSION, "tensors": description}, separators=(",", ":"), ensure_ascii=False)
        texts[_KEY] = text
    stored = {name: _stored(name, array, name not in plain) for name, array in arrays.items()}
    # By decreasing size of an element, so that each tensor begins at a multiple of its own.
    order = sorted(stored, key=lambda name: (-BITS[stored[name][0]], name))
    with replaced(path, overwrite) as file:
        file.write(header_of({name: stored[name] for name in order}, texts))
        for name in order:
            if stored[name][2].nbytes:
                file.write(stored[name][2])
