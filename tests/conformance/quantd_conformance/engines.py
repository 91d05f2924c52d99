"""The available engines: each is a function from a case to an Answer.

NotSupported means that an engine does not support a case (types, a version of the operator, only ONNX's operators); such cases are
counted separately from failures. A refused call, if it can be distinguished from that, is an Answer.
"""

import contextlib
import importlib
import os
import sys
from typing import Any, Callable, Dict, Iterator, Tuple

import numpy as np

from quantd import Client, __version__, errors, local

from .case import OUTPUTS, Answer, Case, NotSupported
from .engine_openvino import openvino
from .engines_onnx import Engine, in_a_line, onnx_reference, onnxruntime


def of_client(caller: Any) -> Engine:
    def ask(case: Case) -> Answer:
        given = dict(case.inputs)
        x = given.pop("x")
        words = {k: v for k, v in case.attributes.items() if k != "dimensions" or v}
        try:
            if case.operation in ("quantize", "dequantize"):
                result = getattr(caller, case.operation)(x, given.pop("scale"), given.pop("zero_point", None), **given, **words)
            else:
                result = getattr(caller, case.operation)(x, **given, **words)
        except errors.QuantdError as error:
            if isinstance(error, errors.InvalidArgumentError):
                return Answer(refused=error.field or "")
            raise
        found = {"y": result.y}
        for name in ("scale", "zero_point", "tensor_scale"):
            if case.operation == "dynamic_quantize" and getattr(result, name) is not None:
                found[f"y_{name}"] = getattr(result, name)
        return Answer(found, report=_report(getattr(result, "error", None)))

    return ask


def _report(error: Any) -> Any:
    names = ("saturated_elements", "non_finite_elements", "mean_squared_error", "max_absolute_error", "sqnr_db")
    return None if error is None else {name: getattr(error, name) for name in names}


@contextlib.contextmanager
def quantd_local() -> Iterator[Tuple[str, Engine]]:
    with local() as caller:
        yield f"quantd {__version__}, in the process", of_client(caller)


@contextlib.contextmanager
def quantd_server(address: str) -> Iterator[Tuple[str, Engine]]:
    with Client(address, timeout=60) as caller:
        yield f"quantd {caller.info().version} at {address}", of_client(caller)


@contextlib.contextmanager
def function(where: str) -> Iterator[Tuple[str, Engine]]:
    """MODULE:FUNCTION, a function of a case that returns the outputs: a dict by name, a list in order, or y alone.
    NotImplementedError: it does not support the case. ValueError: it refuses the call."""
    module, _, name = where.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        called = importlib.import_module(module)
        for part in name.split("."):
            called = getattr(called, part)
    except Exception as error:  # anything that a module raises on import
        raise ValueError(f"engine {where}: {type(error).__name__}: {in_a_line(error)}") from None
    if not callable(called):
        raise ValueError(f"engine {where} is a {type(called).__name__}, must be a function of a case")

    def ask(case: Case) -> Answer:
        try:
            found = called(case)
        except NotImplementedError as error:
            raise NotSupported(in_a_line(error)) from error
        except ValueError as error:
            return Answer(refused=in_a_line(error))
        if isinstance(found, dict):
            return Answer({k: np.asarray(v) for k, v in found.items()})
        arrays = found if isinstance(found, (list, tuple)) else [found]
        return Answer(dict(zip(OUTPUTS, map(np.asarray, arrays))))

    yield where, ask


NAMES: Dict[str, Callable[[], Any]] = {
    "onnx-reference": onnx_reference,
    "onnxruntime": onnxruntime,
    "openvino": openvino,
    "quantd-local": quantd_local,
}


@contextlib.contextmanager
def _built_in(name: str) -> Iterator[Tuple[str, Engine]]:
    with contextlib.ExitStack() as stack:
        try:
            found = stack.enter_context(NAMES[name]())
        except ImportError as error:
            extra = "local" if name == "quantd-local" else name
            hint = "" if "pip install" in str(error) else f"; pip install 'quantd-conformance[{extra}]' brings what it needs"
            raise ImportError(f"engine {name}: {in_a_line(error)}{hint}") from None
        yield found


def engine(name: str) -> Any:
    """A context manager for (text: what answers, and its version; the Engine). Raises ValueError for an unknown name, ImportError if a
    package is missing."""
    if name in NAMES:
        return _built_in(name)
    if name.startswith("quantd="):
        return quantd_server(name[len("quantd=") :])
    if ":" in name:
        return function(name)
    raise ValueError(f"no engine {name!r}; one of {', '.join(NAMES)}, quantd=HOST:PORT, MODULE:FUNCTION")
