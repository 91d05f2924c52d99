"""A case: an operation, its tensors and attributes, the rule that it tests, and the oracle's answer.

Attributes use the names of the contract (proto/quantd/v1/quantization.proto): the fields of a request that are not tensors, enum
values without their prefix. The .json files contain these; FORMAT.md documents both.
"""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Optional, Union

import numpy as np

from . import oracle, oracle_embeddings
from . import oracle_types as ot

OPERATORS = {"quantize": "QuantizeLinear", "dequantize": "DequantizeLinear", "dynamic_quantize": "DynamicQuantizeLinear"}
OPERATIONS = {operator: operation for operation, operator in OPERATORS.items()}
OUTPUTS = ("y", "y_scale", "y_zero_point", "y_tensor_scale")

Tensors = Dict[str, np.ndarray]


class NotSupported(Exception):
    """An engine does not support a case."""


@dataclass
class Answer:
    """A result: tensors by name, or the field that was refused; for an error report its figures."""

    tensors: Tensors = field(default_factory=dict)
    refused: Optional[str] = None
    report: Optional[Dict[str, Union[int, float]]] = None


@dataclass
class Case:
    name: str
    rule: str
    operation: str
    inputs: Tensors
    attributes: Dict[str, Any] = field(default_factory=dict)
    family: str = "node"  # the folder; "node" and "open" are ONNX's
    opset: int = 0  # of ONNX's operator, 0 if there is none
    group: str = ""  # the file, in families with several cases per file
    answers: Dict[str, Answer] = field(
        default_factory=dict
    )  # if the specification leaves it open: all known answers, the oracle's first

    @property
    def operator(self) -> str:
        return OPERATORS.get(self.operation, self.operation)

    @property
    def open(self) -> bool:
        return self.family == "open"

    def expected(self) -> Answer:
        """The oracle's answer."""
        return answer(self.operation, self.inputs, self.attributes)


def _oracle_options(attributes: Dict[str, Any]) -> Dict[str, Any]:
    """The oracle's names for the contract's names."""
    words = dict(attributes)
    options: Dict[str, Any] = {}
    for name in ("output_type", "precision", "scale_type"):
        if name in words:
            options[name] = ot.TYPES[words.pop(name)]
    for name, word, option in (
        ("zero_point_order", "BEFORE_ROUNDING", "before_rounding"),
        ("symmetry", "SYMMETRIC", "symmetric"),
        ("non_finite", "IGNORE", "ignore"),
        ("bit_order", "LSB_FIRST", "lsb_first"),
        ("bit_threshold", "GREATER_OR_EQUAL", "greater_or_equal"),
        ("signed_bits", "TWOS_COMPLEMENT", "twos_complement"),
    ):
        if name in words:
            options[option] = words.pop(name) == word
    if "recipe" in words:
        options["recipe"] = words.pop("recipe").lower()
        options["signed"] = options.pop("output_type", None) is ot.INT8
    options.update(words)
    return options


def answer(operation: str, inputs: Tensors, attributes: Dict[str, Any]) -> Answer:
    """The result that the specification requires, computed by the oracle."""
    try:
        options = _oracle_options(attributes)
        if operation == "quantize_embeddings":
            y, report = oracle_embeddings.quantize_embeddings(inputs["x"], ranges=inputs.get("ranges"), **options)
            return Answer({"y": y}, report=_figures(report))
        if operation == "dynamic_quantize":
            result = oracle.dynamic_quantize(inputs["x"], **options)
        elif operation == "dequantize":
            result = oracle.dequantize(
                inputs["x"], inputs["scale"], inputs.get("zero_point"), tensor_scale=inputs.get("tensor_scale"), **options
            )
        else:
            result = oracle.quantize(inputs["x"], inputs["scale"], inputs.get("zero_point"), **options)
    except oracle.Invalid as invalid:
        return Answer(refused=invalid.field)
    found = (result.y, result.scale, result.zero_point, result.tensor_scale)
    return Answer({name: value for name, value in zip(OUTPUTS, found) if value is not None}, report=_figures(result.error))


def _figures(report: Optional[oracle.Error]) -> Optional[Dict[str, Union[int, float]]]:
    """Rounded to nine digits, which are the same on every machine. Infinities, which JSON can't express, are left out."""
    if report is None:
        return None
    figures: Dict[str, Union[int, float]] = {k: getattr(report, k) for k in ("saturated_elements", "non_finite_elements")}
    for name in ("mean_squared_error", "max_absolute_error", "sqnr_db"):
        if np.isfinite(getattr(report, name)):
            figures[name] = float(f"{getattr(report, name):.9g}")
    return figures


def different(ours: np.ndarray, theirs: np.ndarray, exact_nan: bool = False) -> np.ndarray:
    """Where two arrays of one type and shape differ in any bit. All NaNs are equal, except for those of FLOAT8 if exact_nan is set:
    no specification defines the sign and the payload of a NaN."""
    found = ot.codes(ours) != ot.codes(theirs)
    t = ot.of(ours)
    if t.kind == "float" or (t.kind == "fp8" and not exact_nan):
        found &= ~(np.isnan(ot.to_float(ours)) & np.isnan(ot.to_float(theirs)))
    return found


def mismatches(found: Answer, wanted: Answer, exact_nan: bool = False) -> List[str]:
    """Describes the difference; empty if there is none. exact_nan: as in `different`; also requires an error report."""
    if (found.refused is None) != (wanted.refused is None):
        return [f"refused {found.refused}" if found.refused is not None else f"answered, must refuse {wanted.refused}"]
    if wanted.refused is not None:
        return []
    wrong = []
    for name, expected in wanted.tensors.items():
        got = found.tensors.get(name)
        if got is None:
            wrong.append(f"no {name}")
        elif got.dtype != expected.dtype:
            wrong.append(f"{name} is {_name(got)}, must be {ot.of(expected).name}")
        elif got.shape != expected.shape:
            wrong.append(f"{name} has shape {list(got.shape)}, must have {list(expected.shape)}")
        else:
            where = different(got, expected, exact_nan)
            if where.any():
                wrong.append(f"{name}: {int(where.sum())} of {where.size} elements")
    if wanted.report is not None and found.report is None and exact_nan:
        wrong.append("no error report")
    if wanted.report is not None and found.report is not None:
        wrong += [f"{k} is {found.report.get(k)}, must be {v}" for k, v in wanted.report.items() if not _near(k, found.report.get(k), v)]
    return wrong


def _near(name: str, found: Any, wanted: Any) -> bool:
    """Whether figures agree: counts exactly; decibels to a millionth of the ratio; others to a millionth of the value."""
    if isinstance(wanted, int):
        return found == wanted
    least = 1.0 if name == "sqnr_db" else 0.0
    return found is not None and abs(found - wanted) <= 1e-6 * max(abs(wanted), abs(found), least)


def _name(array: np.ndarray) -> str:
    t = ot.BY_DTYPE.get(array.dtype)
    return t.name if t else str(array.dtype)
