"""quantize, dequantize, dynamic_quantize, quantize_embeddings and calibrate as functions of the module, computed in this process."""

from __future__ import annotations

import functools
import inspect
from typing import TYPE_CHECKING, Any, Callable, Dict, TypeVar

from .local import Local, local

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    _P = ParamSpec("_P")
_R = TypeVar("_R")

_made: Dict[str, Local] = {}


def in_process() -> Local:
    """The local() that all functions share, made on first use; raises ImportError without the package quantd-core."""
    found = _made.get("local")
    return found if found is not None else _made.setdefault("local", local())  # without a lock, which a fork might copy while it is held


def _of(method: Callable[Concatenate[Local, _P], _R]) -> Callable[[Any], Callable[_P, _R]]:
    """Makes the module's function from the method of the same name."""

    def decorate(_: Any) -> Callable[_P, _R]:
        @functools.wraps(method)
        def call(*arguments: _P.args, **options: _P.kwargs) -> _R:
            return method(in_process(), *arguments, **options)

        signature = inspect.signature(method)
        call.__signature__ = signature.replace(parameters=list(signature.parameters.values())[1:])  # type: ignore[attr-defined]
        call.__module__, call.__qualname__ = __package__, method.__name__
        return call

    return decorate


@_of(Local.quantize)
def quantize() -> None: ...


@_of(Local.dequantize)
def dequantize() -> None: ...


@_of(Local.dynamic_quantize)
def dynamic_quantize() -> None: ...


@_of(Local.quantize_embeddings)
def quantize_embeddings() -> None: ...


@_of(Local.calibrate)
def calibrate() -> None: ...
