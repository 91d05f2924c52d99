"""quantize, dequantize, dynamic_quantize and quantize_embeddings as functions of the module, computed in this process."""

import functools
import inspect
import threading
from typing import TYPE_CHECKING, Optional

from .engine import Engine
from .local import Local, local


_made: Optional[Local] = None
_making = threading.Lock()


def in_process() -> Local:
    """The local() that all functions share, made when one is first called; ImportError without the package quantd-core."""
    global _made
    if _made is None:
        with _making:
            _made = _made or local()
    return _made


def _function(name: str):
    method = getattr(Engine, name)

    @functools.wraps(method)
    def call(*arguments, **options):
        return getattr(in_process(), name)(*arguments, **options)

    signature = inspect.signature(method)
    call.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])
    call.__qualname__ = name
    call.__module__ = __package__
    return call


if TYPE_CHECKING:  # the methods' own signatures, of which there is one writing
    quantize = in_process().quantize
    dequantize = in_process().dequantize
    dynamic_quantize = in_process().dynamic_quantize
    quantize_embeddings = in_process().quantize_embeddings
else:
    quantize = _function("quantize")
    dequantize = _function("dequantize")
    dynamic_quantize = _function("dynamic_quantize")
    quantize_embeddings = _function("quantize_embeddings")
