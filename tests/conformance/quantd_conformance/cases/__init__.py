"""All cases, one module per family. The order is that of the archive, and is the same in every run."""

import itertools
from typing import Iterator

from ..case import Case
from ..versions import OPSETS
from . import dequantize_linear, dynamic, embeddings, open_questions, quantize_linear, random_calls, refused, service


def onnx_cases() -> Iterator[Case]:
    """The cases of ONNX's operators: families "node" and "open"."""
    for opset in OPSETS:
        yield from quantize_linear.cases(opset)
        yield from dequantize_linear.cases(opset)
        yield from open_questions.cases(opset)
    yield from dequantize_linear.dynamic()
    yield from open_questions.dynamic()


# Families with several cases per file. Add a module with `cases` here (and to FORMAT.md's table).
OTHERS = (service, dynamic, embeddings, refused, random_calls)


def other_cases() -> Iterator[Case]:
    return itertools.chain.from_iterable(module.cases() for module in OTHERS)


def all_cases() -> Iterator[Case]:
    return itertools.chain(onnx_cases(), other_cases())
