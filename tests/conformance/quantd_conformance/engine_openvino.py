"""OpenVINO on the CPU, in FLOAT: x is a model's input; scale and zero point are constants, as in real models.

A model takes some 15 ms of a core to compile, which is minutes for all cases. Therefore one model has many cases as nodes (`prepare`); each
kind of case is first tested alone, because a node that OpenVINO does not support makes the whole model fail.
"""

import contextlib
import ctypes
import importlib
from typing import Any, Dict, Iterable, Iterator, List, Tuple, Union

from quantd.types import DataType, pack, unpack
from . import onnx_model
from . import oracle_types as ot
from .case import Answer, Case, NotSupported
from .engines_onnx import in_a_line, named, only_onnx, types_of
from .files import Stored

TYPES = {
    "FLOAT": "f32", "FLOAT16": "f16", "BFLOAT16": "bf16", "INT32": "i32", "UINT8": "u8", "INT8": "i8", "UINT16": "u16", "INT16": "i16",
    "UINT4": "u4", "INT4": "i4", "FLOAT8E4M3FN": "f8e4m3", "FLOAT8E5M2": "f8e5m2", "FLOAT4E2M1": "f4e2m1", "FLOAT8E8M0": "f8e8m0",
}  # fmt: skip
BATCH = 64


def _kind(case: Stored) -> tuple:
    """Cases of one kind are all supported, or none of them is."""
    shapes = tuple(sorted((name, ot.of(array).name, array.ndim) for name, array in case.inputs.items()))
    whole = case.inputs["x"].shape if "block_size" in case.attributes else case.inputs["x"].size == 0
    return case.rule, case.operation, case.opset, shapes, tuple(sorted(case.attributes.items())), whole


class OpenVino:
    """The engine. Prepared answers are kept until they are asked for."""

    def __init__(self, ov: Any) -> None:
        self._ov, self._core = ov, ov.Core()
        self._core.set_property("CPU", {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1})
        self._ready: Dict[int, Union[Answer, Exception]] = {}

    def __call__(self, case: Case) -> Answer:
        found = self._ready.pop(id(case), None) or self._alone(case)
        if isinstance(found, Exception):
            raise found
        return found

    def prepare(self, cases: Iterable[Case]) -> None:
        kinds: Dict[tuple, List[Stored]] = {}
        for case in cases:
            if isinstance(case, Stored) and case.model is not None:
                kinds.setdefault(_kind(case), []).append(case)
        together: Dict[int, List[Stored]] = {}
        for (first, *rest) in kinds.values():
            found = self._ready[id(first)] = self._alone(first)
            if isinstance(found, Exception):
                self._ready.update({id(case): found for case in rest})
            else:
                together.setdefault(first.opset, []).extend(rest)
        for same in together.values():
            for i in range(0, len(same), BATCH):
                self._together(same[i : i + BATCH])

    def _alone(self, case: Case) -> Union[Answer, Exception]:
        try:
            return self._ask([only_onnx(case)])[0]
        except NotSupported as error:
            return error

    def _together(self, cases: List[Stored]) -> None:
        try:
            found: List[Union[Answer, Exception]] = list(self._ask(cases))
        except NotSupported:
            found = [self._alone(case) for case in cases]
        self._ready.update(zip(map(id, cases), found))

    def _ask(self, cases: List[Stored]) -> List[Answer]:
        wanted = [(case, t) for case in cases for t in types_of(case)]
        if any(t.name not in TYPES for t in (*(ot.of(case.inputs["x"]) for case in cases), *(t for _, t in wanted))):
            raise NotSupported("has no such type")
        try:
            request = self._core.compile_model(self._core.read_model(_model(cases)), "CPU").create_infer_request()
            for i, case in enumerate(cases):
                x = case.inputs["x"]
                given = self._ov.Tensor(getattr(self._ov.Type, TYPES[ot.of(x).name]), list(x.shape))
                if x.size:
                    ctypes.memmove(given.data.ctypes.data, bytes(pack(x)), given.byte_size)
                request.set_input_tensor(i, given)
            request.infer()
            outputs = [request.get_output_tensor(i) for i in range(len(wanted))]
            types = [y.element_type.get_type_name() for y in outputs]
            raw = [ctypes.string_at(y.data.ctypes.data, y.byte_size) if y.byte_size else b"" for y in outputs]
            shapes = [tuple(y.shape) for y in outputs]
        except Exception as error:
            raise NotSupported(in_a_line(error)) from error
        if types != [TYPES[t.name] for _, t in wanted]:
            raise NotSupported(f"answers {', '.join(dict.fromkeys(types))}")
        arrays = iter([unpack(data, DataType(t.number), shape) for data, (_, t), shape in zip(raw, wanted, shapes)])
        return [named(case, [next(arrays) for _ in types_of(case)]) for case in cases]


def _model(cases: List[Stored]) -> bytes:
    """A model with one node per case, whose names begin with its number."""
    result = onnx_model.ModelProto()
    for i, case in enumerate(cases):
        model = onnx_model.ModelProto.FromString(onnx_model.with_constants(case.model, case.inputs_in_order, keep=("x",)))
        node = model.graph.node[0]
        for names in (node.input, node.output):
            names[:] = [name and f"n{i}_{name}" for name in names]
        for value in (*model.graph.input, *model.graph.output, *model.graph.initializer):
            value.name = f"n{i}_{value.name}"
        result.ir_version, result.graph.name = model.ir_version, "nodes"
        if not result.opset_import:
            result.opset_import.extend(model.opset_import)
        result.graph.node.append(node)
        result.graph.input.extend(model.graph.input)
        result.graph.output.extend(model.graph.output)
        result.graph.initializer.extend(model.graph.initializer)
    return result.SerializeToString()


@contextlib.contextmanager
def openvino() -> Iterator[Tuple[str, OpenVino]]:
    ov = importlib.import_module("openvino")
    yield f"openvino {ov.__version__.split('-')[0]}", OpenVino(ov)
