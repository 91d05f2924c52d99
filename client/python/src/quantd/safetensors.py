"""The container of .safetensors files: every value is checked against the file when it is read; files are written completely or not at all.

    8 bytes: length of the header | header: JSON, padded with spaces | the tensors' bytes, at the offsets in the header
"""

import contextlib
import errno
import json
import math
import os
import secrets
from typing import Any, BinaryIO, Dict, Iterator, List, Mapping, NamedTuple, Tuple, Union

from .foreign import Array

METADATA = "__metadata__"
_MOST_HEADER_BYTES = 100 << 20  # as in other readers
# Limits for the header of a written file: those of quantctl as a reader.
_MOST_WRITTEN = {
    "tensors": 500_000, "dimensions": 2_000_000, "keys of __metadata__": 100_000, "bytes of __metadata__": 25_000_000, "bytes": 50_000_000,
}  # fmt: skip
MOST_DIMENSIONS = 32  # of an array in all releases of numpy
# Bits of an element, for every dtype of the format that numpy and ml_dtypes have.
BITS = {
    "F64": 64, "I64": 64, "U64": 64, "C64": 64, "F32": 32, "I32": 32, "U32": 32, "F16": 16, "BF16": 16, "I16": 16, "U16": 16,
    "I8": 8, "U8": 8, "BOOL": 8, "F8_E4M3": 8, "F8_E4M3FNUZ": 8, "F8_E5M2": 8, "F8_E5M2FNUZ": 8, "F8_E8M0": 8, "F4": 4, "F6_E2M3": 6, "F6_E3M2": 6,
}  # fmt: skip


class FormatError(ValueError):
    """A file with invalid contents; the text names the file and the error."""


class Entry(NamedTuple):
    """A tensor of a file: its dtype as named by the format, its shape, and the position of its bytes."""

    dtype: str
    shape: Tuple[int, ...]
    begin: int
    end: int


def is_text(value: str) -> bool:
    """Whether a str can be encoded in UTF-8: half a surrogate pair can't."""
    try:
        value.isascii() or value.encode()
    except UnicodeEncodeError:
        return False
    return True


def _once(pairs: List[Tuple[str, Any]]) -> Dict[str, Any]:
    found: Dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise FormatError(f"{key!r} occurs twice")
        if not all(is_text(part) for part in (key, value) if isinstance(part, str)):
            raise FormatError(f"{key!r} or its value is half a surrogate pair, which UTF-8 does not have")
        found[key] = value
    return found


def _no_json(text: str) -> Any:
    raise FormatError(f"{text} is not a number of JSON")


def _whole(text: str) -> Any:
    return -0.0 if text == "-0" else int(text)  # so that -0 is not a valid length


def _finite(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _no_json(text)


def parse_json(text: Union[str, bytearray], what: str) -> Dict[str, Any]:
    """The JSON object of a UTF-8 text; raises FormatError for anything else, and for a key that occurs twice."""
    try:
        if not isinstance(text, str):
            text = text.decode()  # json.loads would accept UTF-16 and UTF-32, too
        value = json.loads(text, object_pairs_hook=_once, parse_int=_whole, parse_float=_finite, parse_constant=_no_json)
    except FormatError:
        raise
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{what} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise FormatError(f"{what} is a {type(value).__name__}, must be an object")
    return value


def lengths(value: Any, what: str) -> Tuple[int, ...]:
    """Checks that it is a list of non-negative integers."""
    if not isinstance(value, list) or any(type(n) is not int or not 0 <= n < 1 << 63 for n in value):
        raise FormatError(f"{what} is {value!r}, must be a list of integers that are not negative")
    if len(value) > MOST_DIMENSIONS:
        raise FormatError(f"{what} has {len(value)} dimensions, more than {MOST_DIMENSIONS}")
    return tuple(value)


def _entry(name: str, value: Any, size: int) -> Entry:
    if not isinstance(value, dict):
        raise FormatError(f"tensor {name!r} is a {type(value).__name__}, must be an object")
    dtype = value.get("dtype")
    if not isinstance(dtype, str) or dtype not in BITS:
        raise FormatError(f"tensor {name!r} has dtype {dtype!r}, which is not known here")
    shape = lengths(value.get("shape"), f"the shape of tensor {name!r}")
    offsets = lengths(value.get("data_offsets"), f"data_offsets of tensor {name!r}")
    if len(offsets) != 2 or offsets[0] > offsets[1] or offsets[1] > size:
        raise FormatError(f"tensor {name!r} has data_offsets {list(offsets)}, of {size} bytes of tensors in the file")
    expected = (math.prod(shape) * BITS[dtype] + 7) // 8
    if offsets[1] - offsets[0] != expected:
        raise FormatError(
            f"tensor {name!r}, {dtype} {list(shape)}, takes {expected} bytes, its data_offsets hold {offsets[1] - offsets[0]}"
        )
    return Entry(dtype, shape, *offsets)


def _check_places(entries: Mapping[str, Entry], size: int) -> None:
    end, before = 0, ""
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin < end:
            raise FormatError(f"tensors {before!r} and {name!r} overlap: one ends at {end}, the other begins at {entry.begin}")
        if entry.begin > end:
            raise FormatError(f"{entry.begin - end} bytes at {end} before tensor {name!r} belong to no tensor")
        end, before = entry.end, name
    if end != size:
        raise FormatError(f"the tensors end at {end}, the file has {size} bytes of them")


class Reader:
    """An open file. entries: its tensors by name; metadata: the texts of __metadata__."""

    def __init__(self, file: BinaryIO):
        self._file = file
        size = file.seek(0, os.SEEK_END)
        file.seek(0)
        head = file.read(8)
        length = int.from_bytes(head, "little")
        if len(head) < 8 or (length > size - 8 and file.read(1) != b"{"):
            raise FormatError(f"this is not a .safetensors file: it has {size} bytes and begins with {head!r}")
        if length > size - 8:
            raise FormatError(f"the header is {length} bytes long, the file has {size} bytes")
        if length > _MOST_HEADER_BYTES:
            raise FormatError(f"the header is {length} bytes long, more than {_MOST_HEADER_BYTES}")
        header = parse_json(self._exactly(8, length), "the header")
        metadata = header.pop(METADATA, {})
        if not isinstance(metadata, dict) or not all(isinstance(value, str) for value in metadata.values()):
            raise FormatError(f"{METADATA} must be an object of texts")
        self._data = 8 + length
        self.metadata: Dict[str, str] = metadata
        self.entries: Dict[str, Entry] = {name: _entry(name, value, size - self._data) for name, value in header.items()}
        _check_places(self.entries, size - self._data)

    def _exactly(self, begin: int, length: int) -> bytearray:
        self._file.seek(begin)
        data = bytearray(length)
        view, got = memoryview(data), 0
        while got < length:
            count = self._file.readinto(view[got:])
            if not count:
                raise FormatError(f"the file ends at {begin + got}, while it is read up to {begin + length}")
            got += count
        return data

    def read(self, name: str) -> bytearray:
        """The bytes of a tensor."""
        entry = self.entries[name]
        return self._exactly(self._data + entry.begin, entry.end - entry.begin)


def header_of(tensors: Mapping[str, Tuple[str, Tuple[int, ...], Array]], metadata: Mapping[str, str]) -> bytes:
    """The first bytes of a file with these tensors, which follow in this order. Raises ValueError for more than quantctl reads."""
    sizes = {
        "tensors": len(tensors), "dimensions": sum(len(shape) for _, shape, _ in tensors.values()),
        "keys of __metadata__": len(metadata),
        "bytes of __metadata__": sum(len(text.encode()) for item in metadata.items() for text in item),
    }  # fmt: skip
    header: Dict[str, Any] = {METADATA: dict(metadata)} if metadata else {}
    at = 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + data.nbytes]}
        at += data.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    for what, size in {**sizes, "bytes": len(text)}.items():
        if size > _MOST_WRITTEN[what]:
            raise ValueError(f"the header would have {size} {what}, {_MOST_WRITTEN[what]} are the most")
    return len(text).to_bytes(8, "little") + text


def _linked(temporary: str, path: str) -> bool:
    """Renames a file, unless another file with that name exists meanwhile. False: the file system has no links."""
    if not hasattr(os, "link"):
        return False
    try:
        os.link(temporary, path)
    except FileExistsError:
        raise
    except OSError as error:
        if error.errno not in (errno.EPERM, errno.ENOSYS, errno.EOPNOTSUPP, errno.ENOTSUP, errno.EINVAL, errno.EMLINK):
            raise
        if os.path.lexists(path):
            raise FileExistsError(17, "exists already; overwrite=True replaces it", path) from None
        return False
    os.unlink(temporary)
    return True


@contextlib.contextmanager
def replaced(path: str, overwrite: bool) -> Iterator[BinaryIO]:
    """A new file to write. It gets its name once all of it is on the disk; if that fails, nothing is left of it."""
    folder, name = os.path.split(os.path.abspath(path))
    if not overwrite and os.path.lexists(path):
        raise FileExistsError(17, "exists already; overwrite=True replaces it", path)
    temporary = os.path.join(folder, f".{name[:40]}.{secrets.token_hex(6)}.tmp")  # a name has at most 255 bytes, a letter up to 4
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o666)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path) from None
    try:
        with open(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        if overwrite or not _linked(temporary, path):
            os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise
    if os.name == "posix":
        with contextlib.suppress(OSError):  # for a folder that may not be read, for example: the file has been written
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
