"""The bytes around arrays: a message is made with one copy of its arrays, and read without a copy.

The generated parser copies a tensor's bytes at least twice in each direction. Here it only handles the small parts:

    request: tag, length | tensor: data_type, shape, tag and length of raw_data | the array's own memory | ... | the rest
    answer:  the same, with raw_data found by its tags and left where it was received

Messages made here are ordinary protobuf. Received bytes may be anything: everything except one tensor per field with one
raw_data is left to the generated parser, which decides what a message means.
"""

import ctypes
import functools
import platform
from typing import Any, Dict, List, Optional, Sequence, Tuple

import numpy as np

from . import messages
from .foreign import Array
from .types import DataType, data_type, from_message, packed, unpack

# Smaller arrays and messages are copied faster by code in C than they are found by code in Python.
SMALL = 16 << 10
# The memory of a message from this size on is kept for the next call, whose message often has the same size.
REUSED_BYTES = 1 << 20
_RAW_DATA = messages.Tensor.DESCRIPTOR.fields_by_name["raw_data"].number
_MOST_FIELDS = 100  # our messages have fewer; one with millions of fields is for code in C
_BYTES = 2  # protobuf's wire type of bytes and messages
_MAKES_BYTES_IN_PLACE = platform.python_implementation() == "CPython"


def varint(value: int) -> bytes:
    """A non-negative number in protobuf's encoding."""
    if value < 0x80:
        return bytes((value,))
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)


def _tag(number: int) -> bytes:
    return varint(number << 3 | _BYTES)


def memory_of(fresh: bytes) -> Array:
    """The memory of a bytes object, for writing.

    Bytes are constants once other code can see them; so use this only for an object that was just made and is not shared:
    a message that is being made, or one that the transport has received only for us.
    """
    memory = (ctypes.c_char * len(fresh)).from_address(ctypes.cast(ctypes.c_char_p(fresh), ctypes.c_void_p).value)
    memory.owner = fresh  # the array keeps the ctypes object alive, and that the bytes
    return np.frombuffer(memory, np.uint8)


def field(number: int, message: bytes) -> bytes:
    """A message inside of another, as the field with that number."""
    return _tag(number) + varint(len(message)) + message


@functools.lru_cache(maxsize=256)  # most programs have few shapes, and making the message takes longer than copying 4 KiB
def _head(number: int, dtype: "np.dtype[Any]", shape: Tuple[int, ...], size: int) -> bytes:
    """The bytes before the `size` bytes of a tensor in the field with that number."""
    header = messages.Tensor(data_type=data_type(dtype), shape=shape).SerializeToString()
    header += _tag(_RAW_DATA) + varint(size)
    return _tag(number) + varint(len(header) + size) + header


def tensor(number: int, array: Array) -> Tuple[bytes, Any]:
    """The buffers of a tensor as the field with that number. A large one is an array, to be copied by `join`."""
    memory = packed(array)
    size = memory.nbytes
    return _head(number, array.dtype, array.shape, size), memory if size >= SMALL else memory.tobytes()


def size_of(buffers: Sequence[Any]) -> int:
    return sum(b.nbytes if isinstance(b, np.ndarray) else len(b) for b in buffers)


def join(buffers: Sequence[Any], spare: Optional[bytes] = None) -> bytes:
    """One message from its buffers: the only copy of each array. In the memory of `spare`, a message that nobody needs, if it has that size."""
    if spare is None or len(spare) != size_of(buffers) or not _MAKES_BYTES_IN_PLACE:
        try:
            return b"".join(buffers)
        except TypeError:
            pass  # for an array that is not contiguous
        scattered = [b for b in buffers if isinstance(b, np.ndarray) and not b.flags.c_contiguous]
        if not scattered or not _MAKES_BYTES_IN_PLACE:
            return b"".join([np.ascontiguousarray(b).reshape(-1).view(np.uint8) if isinstance(b, np.ndarray) else b for b in buffers])
        spare = bytes(size_of(buffers))
    memory, at = memory_of(spare), 0
    for buffer in buffers:
        if isinstance(buffer, np.ndarray):
            codes = buffer.view(f"u{buffer.itemsize}")
            np.copyto(memory[at : at + buffer.nbytes].view(codes.dtype).reshape(codes.shape), codes)
            at += buffer.nbytes
        else:
            memory[at : at + len(buffer)] = np.frombuffer(buffer, np.uint8)
            at += len(buffer)
    return spare


def item(identity: int, number: int, request: Sequence[Any]) -> List[Any]:
    """The buffers of a stream's item: its id, and the request in the field with that number."""
    return [b"\x08" + varint(identity) + _tag(number) + varint(size_of(request)), *request]


# --- answers -------------------------------------------------------------------------------------------------------------


class _Unusual(Exception):
    """Bytes that only the generated parser can interpret."""


def _read_varint(data: bytes, at: int) -> Tuple[int, int]:
    value = shift = 0
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise _Unusual


def _fields(data: bytes, at: int, end: int):
    """Each field of the message data[at:end]: its number, its first byte, the first and last of its payload; -1 if it has no length."""
    count = 0
    while at < end:
        begin, count = at, count + 1
        if count > _MOST_FIELDS:
            raise _Unusual
        tag, at = _read_varint(data, at)
        kind = tag & 7
        payload = -1
        if kind == 0:
            _, at = _read_varint(data, at)
        elif kind == _BYTES:
            length, payload = _read_varint(data, at)
            at = payload + length
        elif kind in (1, 5):
            at += 8 if kind == 1 else 4
        else:
            raise _Unusual
        if at > end or not tag >> 3:
            raise _Unusual
        yield tag >> 3, begin, payload, at


def _tensor(data: bytes, begin: int, end: int) -> Array:
    """The array of the tensor data[begin:end] that has one raw_data."""
    rest, raw = [], None
    for number, start, payload, stop in _fields(data, begin, end):
        if number > _RAW_DATA or (number == _RAW_DATA and (raw is not None or payload < 0)):
            raise _Unusual
        if number == _RAW_DATA:
            raw = payload, stop
        else:
            rest.append(data[start:stop])
    if raw is None:
        raise _Unusual
    tensor = messages.Tensor.FromString(b"".join(rest))
    return take(data, raw[0], raw[1], DataType(tensor.data_type), tensor.shape)


def take(data: bytes, begin: int, end: int, kind: DataType, shape: Sequence[int]) -> Array:
    """The array of the raw_data data[begin:end] of a received message that is not shared.

    For 8 bits and wider: the message's own memory, if that is most of the message, so that a few scales do not keep a
    whole tensor alive. Writable and aligned: raw_data at an unaligned position is moved down by less than an element, over bytes
    that have been read already.
    """
    if not (_MAKES_BYTES_IN_PLACE and kind.bits >= 8 and kind.in_place and 2 * (end - begin) >= len(data)):
        return unpack(memoryview(data)[begin:end], kind, shape)
    kind.check(end - begin, shape)
    memory = memory_of(data)
    odd = (memory.ctypes.data + begin) % kind.dtype.itemsize
    if odd > begin:
        return unpack(memoryview(data)[begin:end], kind, shape)
    if odd:
        ctypes.memmove(memory.ctypes.data + begin - odd, memory.ctypes.data + begin, end - begin)
    return memory[begin - odd : end - odd].view(kind.dtype).reshape(tuple(shape))


# A message without its large tensors, and these by the names of their fields.
Answer = Tuple[Any, Dict[str, Array]]


def array(answer: Answer, field: str) -> Optional[Array]:
    """The tensor of that field; None if there is none."""
    message, arrays = answer
    if field in arrays:
        return arrays[field]
    return from_message(getattr(message, field)) if message.HasField(field) else None


def read(message_class: Any, data: bytes, begin: int = 0, end: Optional[int] = None) -> Answer:
    """The answer data[begin:end], a message of that class. `data` must not be shared.

    Raises ValueError, or DecodeError of protobuf, if it is invalid.
    """
    end = len(data) if end is None else end
    if end - begin > SMALL:
        try:
            return _read_in_place(message_class, data, begin, end)
        except (_Unusual, IndexError):
            pass
    return message_class.FromString(data[begin:end]), {}


def _read_in_place(message_class: Any, data: bytes, begin: int, end: int) -> Answer:
    tensors = {
        f.number: f.name for f in message_class.DESCRIPTOR.fields if f.message_type is not None and f.message_type.name == "Tensor"
    }
    rest, arrays, spans = [], {}, []
    seen = set()
    for number, start, payload, stop in _fields(data, begin, end):
        if number in tensors and (payload < 0 or number in seen):
            raise _Unusual
        seen.add(number)
        if number in tensors and stop - payload >= SMALL:
            spans.append((number, payload, stop))
        else:
            rest.append(data[start:stop])
    message = message_class.FromString(b"".join(rest))
    for number, payload, stop in spans:  # everything else has been read: the memory may be moved
        arrays[tensors[number]] = _tensor(data, payload, stop)
    return message, arrays


def read_item(data: bytes) -> Tuple[int, Optional[str], Any]:
    """A stream's answer: its id, which of the answers it has, and that one, an Answer or an ItemError."""
    try:
        if len(data) > SMALL:
            return _read_item_in_place(data)
    except (_Unusual, IndexError):
        pass
    answer = messages.StreamResponse.FromString(data)
    kind = answer.WhichOneof("response")
    value = getattr(answer, kind) if kind else None
    return answer.id, kind, value if kind in (None, "error") else (value, {})


def _read_item_in_place(data: bytes) -> Tuple[int, Optional[str], Any]:
    by_number = messages.StreamResponse.DESCRIPTOR.fields_by_number
    identity, response = b"", None
    for number, start, payload, stop in _fields(data, 0, len(data)):
        field = by_number.get(number)
        if number == 1 and payload < 0:
            identity = data[start:stop]
        elif field is not None and field.containing_oneof is not None and payload >= 0 and response is None:
            response = field, payload, stop
        else:
            raise _Unusual
    if response is None or response[0].name == "error":
        raise _Unusual
    field, payload, stop = response
    answer = read(messages.ANSWERS[field.name], data, payload, stop)
    return messages.StreamResponse.FromString(identity).id, field.name, answer
