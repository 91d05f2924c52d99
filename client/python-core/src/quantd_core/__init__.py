"""quantd_core: quantize numpy arrays in this process, bit-exact to the ONNX operators.

    import numpy, quantd_core

    result = quantd_core.dynamic_quantize(numpy.random.randn(4, 8).astype(numpy.float32))
    print(result.y, result.scale, result.zero_point)

The functions are methods of an Engine that is made when one is first called, with QUANTD_THREADS or all CPUs.
"""

import functools as _functools
from typing import TYPE_CHECKING

from . import checkpoints
from .calibration import Calibrated
from .embeddings import PRESETS as EMBEDDING_PRESETS
from .engine import Engine
from .engine_stream import EngineStream
from .errors import DeadlineExceededError, FieldViolation, InvalidArgumentError, QuantdError
from .results import Dequantized, DynamicQuantized, QuantizationError, Quantized, QuantizedEmbeddings
from .status import StatusCode
from .types import DataType, data_type, pack, unpack

__version__ = "0.1.0"

__all__ = [
    "Calibrated",
    "DataType",
    "DeadlineExceededError",
    "Dequantized",
    "DynamicQuantized",
    "EMBEDDING_PRESETS",
    "Engine",
    "EngineStream",
    "FieldViolation",
    "InvalidArgumentError",
    "QuantdError",
    "QuantizationError",
    "Quantized",
    "QuantizedEmbeddings",
    "StatusCode",
    "data_type",
    "calibrate",
    "checkpoints",
    "dequantize",
    "dynamic_quantize",
    "in_process",
    "info",
    "pack",
    "quantize",
    "quantize_embeddings",
    "unpack",
]


@_functools.lru_cache(maxsize=None)
def in_process() -> Engine:
    """The Engine that all functions share."""
    return Engine()


_METHODS = ("quantize", "dequantize", "dynamic_quantize", "quantize_embeddings", "calibrate", "info")

if TYPE_CHECKING:
    quantize = in_process().quantize
    dequantize = in_process().dequantize
    dynamic_quantize = in_process().dynamic_quantize
    quantize_embeddings = in_process().quantize_embeddings
    calibrate = in_process().calibrate
    info = in_process().info
else:

    def __getattr__(name: str):
        # The methods themselves, with their signatures and without a call between.
        if name not in _METHODS:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        method = globals()[name] = getattr(in_process(), name)
        return method
