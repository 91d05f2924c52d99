"""SharedTensor: a tensor in a file that client and server on one node have both mapped, so that its bytes are not sent.

The file is in a memory directory (tmpfs), which must be the server's --shared_memory_dir. Its name is
quantd-<pid>-<random>. It is allocated completely at once, so that its pages count as this process's memory and not as the
server's, and it is locked (flock) as long as it is in use, because the server removes files that killed clients left.
"""

import fcntl
import math
import mmap
import os
import secrets
import sys
import weakref
from typing import Any, Optional, Sequence, Tuple

import numpy as np

from . import messages
from .choices import integers
from .errors import wrong_value
from .foreign import Array
from .types import ArrayLike, DataType, DataTypeLike, as_array, data_type, pack, unpack

_VARIABLE = "QUANTD_SHARED_MEMORY_DIR"


def directory(given: Optional[str]) -> str:
    """The directory in the argument, or in the environment."""
    found = given or os.environ.get(_VARIABLE)
    if not found:
        raise wrong_value("shared_memory_dir", f"no directory for shared memory: give Client shared_memory_dir=, or set {_VARIABLE}")
    return found


def _create(folder: str, size: int) -> Tuple[str, mmap.mmap]:
    path = os.path.join(folder, f"quantd-{os.getpid()}-{secrets.token_hex(8)}")
    file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW, 0o660)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        # The server may run as another user of the directory's group, whatever umask this process has.
        os.fchmod(file, 0o660)
        os.posix_fallocate(file, 0, size)
        return path, mmap.mmap(file, size)  # it keeps the file open, and so its lock
    except BaseException:
        os.unlink(path)
        raise
    finally:
        os.close(file)


def _remove(path: str, process: int) -> None:
    if os.getpid() != process:  # a child has inherited the object, but does not own the file
        return
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass


class SharedTensor:
    """A tensor in shared memory: Client.shared makes one of an array, Client.shared_empty an empty one.

        with client.shared(x) as shared_x, client.shared_empty(x.shape, "uint8") as shared_y:
            y = client.quantize(shared_x, 0.5, out=shared_y).y

    It replaces an array in calls, and as `out` it is the memory of the answer; by one call at a time. Its file is removed
    at the end of the `with` block, by close(), or at the end of the process. Arrays that are views of it stay valid.
    """

    def __init__(self, folder: str, shape: Sequence[int], dtype: DataTypeLike):
        self.shape: Tuple[int, ...] = integers(shape, "shape")
        if any(length < 0 for length in self.shape):
            raise wrong_value("shape", f"shape is {list(self.shape)}, no length may be negative")
        self.data_type: DataType = data_type(dtype, "dtype")
        self.byte_size: int = self.data_type.byte_size(math.prod(self.shape))
        if self.byte_size > sys.maxsize:
            size = f"{self.byte_size} bytes of {self.data_type.name}"
            raise wrong_value("shape", f"shape is {list(self.shape)}, {size}: a file has at most {sys.maxsize}")
        path, self._memory = _create(folder, max(self.byte_size, 1))
        self.region: str = os.path.basename(path)
        self._finalizer = weakref.finalize(self, _remove, path, os.getpid())

    @property
    def dtype(self) -> "np.dtype[Any]":
        return self.data_type.dtype

    def array(self) -> Array:
        """The elements as a view: changes to it are used by the next call. For types narrower than a byte a copy."""
        return self._view(self.data_type, self.shape)

    def write(self, values: ArrayLike) -> None:
        """Replaces the elements by an array of this shape and type."""
        array = as_array(values, "values", self.data_type)
        if array.shape != self.shape or data_type(array.dtype) != self.data_type:
            raise wrong_value("values", f"values are {array.dtype} {array.shape}, this tensor is {self.dtype} {self.shape}")
        if self.data_type.bits >= 8:
            np.copyto(self.array(), array)
        else:
            self._put(array)

    def _put(self, array: Array) -> None:
        """Writes an array of any type and shape that fits, in the format of the wire."""
        raw = pack(array)
        self._open()[: len(raw)] = raw

    def close(self) -> None:
        """Removes the file. Its memory is freed once no array is a view of it."""
        self._finalizer()
        try:
            self._memory.close()
        except BufferError:
            pass  # views still use it

    def __enter__(self) -> "SharedTensor":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _open(self) -> mmap.mmap:
        if not self._finalizer.alive:
            raise ValueError(f"the shared tensor {self.region} is closed")
        return self._memory

    def _view(self, kind: DataType, shape: Sequence[int]) -> Array:
        count, memory = kind.elements(shape), self._open()
        if kind.bits < 8:
            return unpack(memory[: kind.byte_size(count)], kind, shape)
        return (np.frombuffer(memory, kind.dtype, count) if count else np.empty(0, kind.dtype)).reshape(shape)

    def _reference(self) -> Any:
        self._open()
        return messages.SharedMemoryReference(region=self.region, byte_size=self.byte_size)

    def _message(self) -> Any:
        return messages.Tensor(data_type=int(self.data_type), shape=self.shape, shared_memory=self._reference())


class SharesMemory:
    """The shared-tensor methods of clients."""

    _shared_memory_dir: Optional[str] = None

    def shared(self, x: ArrayLike) -> SharedTensor:
        """Put an array into memory that the server can read, too: calls with it do not send its bytes.

        Parameters
        ----------
        x : array_like of any shape
            The array, which is copied once; Python numbers are float32.

        Returns
        -------
        SharedTensor
            Of x's shape and type.
        """
        array = as_array(x, "x", DataType.FLOAT)
        tensor = SharedTensor(directory(self._shared_memory_dir), array.shape, array.dtype)
        try:
            tensor.write(array)
        except BaseException:
            tensor.close()
            raise
        return tensor

    def shared_empty(self, shape: Sequence[int], dtype: DataTypeLike) -> SharedTensor:
        """Make shared memory for an answer.

        Parameters
        ----------
        shape : sequence of int
            Shape of the answer, or any shape with the same number of bytes.
        dtype : DataTypeLike
            Type of its elements.

        Returns
        -------
        SharedTensor
            With that shape and type; its elements are 0.
        """
        return SharedTensor(directory(self._shared_memory_dir), shape, dtype)
