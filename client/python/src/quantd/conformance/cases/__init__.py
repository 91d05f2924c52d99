"""All cases, one module a family. The order is that of the archive and does not change from run to run."""

import itertools
from typing import Iterator

from ..case import Case
from ..versions import OPSETS
from . import dequantize_linear, dynamic, embeddings, layouts, open_questions, quantize_linear, random_calls, refused, service


def onnx_cases() -> Iterator[Case]:
    """Those of ONNX's operators: families "node" and "open"."""
    for opset in OPSETS:
        yield from quantize_linear.cases(opset)
        yield from dequantize_linear.cases(opset)
        yield from open_questions.cases(opset)
    yield from dequantize_linear.dynamic()
    yield from open_questions.dynamic()


# Families that have files of many cases. A module that gives them in `cases` is added here (and in FORMAT.md's table).
OTHERS = (service, dynamic, embeddings, layouts, refused, random_calls)


def other_cases() -> Iterator[Case]:
    return itertools.chain.from_iterable(module.cases() for module in OTHERS)


def all_cases() -> Iterator[Case]:
    return itertools.chain(onnx_cases(), other_cases())
