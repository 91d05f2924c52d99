"""Views arrays of other libraries as numpy arrays: torch, JAX, anything with __array__ or __dlpack__.

No library is imported for this: a program that passes a torch.Tensor has imported torch.
"""

import array
import sys
from typing import Any, FrozenSet, List, Optional, Protocol, Sequence, Set, Tuple

import ml_dtypes
import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]


class SupportsDLPack(Protocol):
    """An array of a library that supports DLPack, such as a torch.Tensor."""

    def __dlpack__(self, *arguments: Any, **options: Any) -> Any: ...


# Types of torch that numpy does not have, with the types as which they are viewed in between.
_TORCH_TYPES = {
    "torch.bfloat16": ("int16", ml_dtypes.bfloat16),
    "torch.float8_e4m3fn": ("uint8", ml_dtypes.float8_e4m3fn),
    "torch.float8_e4m3fnuz": ("uint8", ml_dtypes.float8_e4m3fnuz),
    "torch.float8_e5m2": ("uint8", ml_dtypes.float8_e5m2),
    "torch.float8_e5m2fnuz": ("uint8", ml_dtypes.float8_e5m2fnuz),
    "torch.float8_e8m0fnu": ("uint8", ml_dtypes.float8_e8m0fnu),
}
# The numpy types of Python's numbers: a scalar of one of these does not say which type was meant, any other dtype does.
NUMBERS: "FrozenSet[np.dtype[Any]]" = frozenset(map(np.dtype, (np.float64, np.int64, np.uint64)))


_BUFFERS = (bytearray, memoryview, array.array)  # before Python 3.12 a buffer can't be recognized otherwise


def _of_torch(tensor: Any) -> Array:
    torch = sys.modules["torch"]
    tensor = tensor.detach()  # only the numbers are needed, not their gradient
    if tensor.device.type != "cpu":
        raise TypeError(f"it is on {tensor.device}; bring it here with .cpu()")
    if str(tensor.dtype) in _TORCH_TYPES:
        through, dtype = _TORCH_TYPES[str(tensor.dtype)]
        if not tensor.dim():  # torch views these as another type only if it has the same width, which is true here
            return tensor.reshape(1).view(getattr(torch, through)).numpy().view(dtype).reshape(())
        return tensor.view(getattr(torch, through)).numpy().view(dtype)
    return tensor.numpy()


def as_numpy(value: Any) -> Optional[Array]:
    """The numpy array of an array of any library; None for values that are not arrays, such as numbers and lists.

    Raises TypeError for arrays that numpy can't view, such as those of a GPU, and for masked elements, which would be read as numbers.
    """
    if isinstance(value, np.ndarray):
        if np.ma.is_masked(value):
            raise TypeError(f"{np.ma.count_masked(value)} of {value.size} elements are masked; fill them, as by .filled(0)")
        return np.asarray(value)  # a subclass, such as np.matrix, has its own rules
    if isinstance(value, (bool, int, float, complex, str, bytes, list, tuple)):  # np.float64 is a float
        return None
    if isinstance(value, np.generic):
        return None if value.dtype in NUMBERS else np.asarray(value)
    torch = sys.modules.get("torch")
    try:
        if torch is not None and isinstance(value, torch.Tensor):
            return _of_torch(value)
        if hasattr(value, "__array__"):
            return np.asarray(value)
        if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
        if hasattr(value, "__buffer__") or isinstance(value, _BUFFERS):
            return np.asarray(value)
    except (BufferError, RuntimeError, TypeError, ValueError) as error:
        raise TypeError(f"a {type(value).__module__}.{type(value).__qualname__} is not an array in this memory: {error}") from None
    return None


def leaves(values: Sequence[Any]) -> "Tuple[List[Any], Set[np.dtype[Any]]]":
    """A list with the numpy arrays of the arrays within, and their dtypes; Python's numbers have none."""
    kinds = set(map(type, values)) - {int, float, complex}
    if bool in kinds:  # numpy treats True as 1 beside a number
        raise TypeError("True and False are not numbers")
    if not kinds:
        return list(values), set()
    found: List[Any] = []
    dtypes: "Set[np.dtype[Any]]" = set()
    for value in values:
        if isinstance(value, (list, tuple)):
            value, inner = leaves(value)
            dtypes |= inner
        else:
            leaf = as_numpy(value)
            if leaf is not None:
                value = leaf
                dtypes.add(leaf.dtype.newbyteorder("="))
        found.append(value)
    return found, dtypes
