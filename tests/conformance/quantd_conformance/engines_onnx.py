"""Engines for ONNX's operators: the reference evaluator and ONNX Runtime; and code shared with engine_openvino.py."""

import contextlib
import ctypes
import importlib
import warnings
from typing import Any, Callable, Iterator, List, Tuple

import numpy as np

from quantd.types import DataType, unpack
from . import onnx_model
from . import oracle_types as ot
from .case import Answer, Case, NotSupported
from .files import Stored

Engine = Callable[[Case], Answer]


def only_onnx(case: Case) -> Stored:
    if not isinstance(case, Stored) or case.model is None:
        raise NotSupported("has ONNX's operators alone")
    return case


def named(case: Case, arrays: List[np.ndarray]) -> Answer:
    return Answer(dict(zip(onnx_model.OUTPUTS[case.operation], arrays)))


@contextlib.contextmanager
def onnx_reference() -> Iterator[Tuple[str, Engine]]:
    """ONNX's reference evaluator."""
    onnx = importlib.import_module("onnx")
    reference = importlib.import_module("onnx.reference")

    def ask(case: Case) -> Answer:
        stored = only_onnx(case)
        try:
            evaluator = reference.ReferenceEvaluator(onnx.load_from_string(stored.model))
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found = evaluator.run(None, stored.inputs_in_order)
        except Exception as error:
            raise NotSupported(in_a_line(error)) from error
        return named(case, [np.asarray(y) for y in found])

    yield f"onnx {onnx.__version__}, reference evaluator", ask


@contextlib.contextmanager
def onnxruntime() -> Iterator[Tuple[str, Engine]]:
    """ONNX Runtime on the CPU, each node unchanged: no graph optimization."""
    ort = importlib.import_module("onnxruntime")
    ort.set_default_logger_severity(4)
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4

    def ask(case: Case) -> Answer:
        stored = only_onnx(case)
        model = onnx_model.with_constants(stored.model, stored.inputs_in_order)
        try:
            session = ort.InferenceSession(model, options, ["CPUExecutionProvider"])
            found = session.run_with_ort_values(None, {})
        except Exception as error:
            raise NotSupported(in_a_line(error)) from error
        return named(case, [_of_ort(value, t) for value, t in zip(found, types_of(case))])

    yield f"onnxruntime {ort.__version__}", ask


def types_of(case: Case) -> List[ot.Type]:
    wanted = case.expected().tensors or next(a.tensors for a in case.answers.values() if a.tensors)
    return [ot.of(wanted[name]) for name in onnx_model.OUTPUTS[case.operation]]


def _of_ort(value: Any, t: ot.Type) -> np.ndarray:
    """An OrtValue's memory: ONNX Runtime returns numpy arrays for only a few of the small types."""
    raw = ctypes.string_at(value.data_ptr(), value.tensor_size_in_bytes()) if value.tensor_size_in_bytes() else b""
    return unpack(raw, DataType(t.number), tuple(value.shape()))


def in_a_line(error: Exception) -> str:
    """The part of an error that gives the reason, in one line."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return max(lines, key=len)[:200] if lines else type(error).__name__
