"""local(): quantd in this process, instead of a server and its Client."""

from typing import Any, Optional, Tuple

import numpy as np

from .engine import Engine
from .foreign import Array
from .shared import SharedTensor, SharesMemory


class Local(Engine, SharesMemory):
    """The result of local(): an Engine that also accepts shared tensors, as arguments and as `out`.

    Shared memory has no advantage here, and makes no difference.
    """

    _extensions = ("embeddings", "calibrate", "shared_memory")

    def __init__(self, threads: Optional[int], *, timeout: Optional[float], shared_memory_dir: Optional[str]):
        super().__init__(threads, timeout=timeout)
        self._shared_memory_dir = shared_memory_dir

    @staticmethod
    def _operand(value: Any, name: str, default: int) -> Array:
        return value.array() if isinstance(value, SharedTensor) else Engine._operand(value, name, default)

    @staticmethod
    def _place(out: Any) -> Tuple[Array, str]:
        if not isinstance(out, SharedTensor):
            return Engine._place(out)
        return np.frombuffer(out._open(), np.uint8)[: out.byte_size], out.region


def local(
    threads: Optional[int] = None, *, timeout: Optional[float] = None, shared_memory_dir: Optional[str] = None
) -> Local:
    """quantd in this process: an object with Client's methods, with the same bits and the same errors.

        client = quantd.local()  # instead of quantd.Client(address)

    Needs the package quantd-core. threads, timeout: see quantd.engine.Engine. shared_memory_dir: as in Client.
    """
    from . import __version__

    try:
        import quantd_core
    except ImportError as error:
        raise ImportError(
            f"quantd.local() needs the package quantd-core: pip install './client/python[local]' in a clone of quantd ({error})",
            name=error.name,
        ) from error
    if quantd_core.__version__ != __version__:
        raise ImportError(
            f"quantd.local() of quantd {__version__} needs quantd-core {__version__}, found {quantd_core.__version__}",
            name="quantd_core",
        )
    return Local(threads, timeout=timeout, shared_memory_dir=shared_memory_dir)
