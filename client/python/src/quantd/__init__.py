"""quantd: quantize numpy arrays over gRPC, bit-exact to the ONNX operators.

>>> import numpy, quantd
>>> x = numpy.linspace(-1, 1, 6, dtype=numpy.float32).reshape(2, 3)
>>> with quantd.Client() as client:  # QUANTD_ADDRESS, or 127.0.0.1:50051
...     result = client.dynamic_quantize(x, output_type="int8", axis=0)
...     back = result.dequantize().y
>>> result.y
array([[-127,  -25,   76],
       [ -76,   25,  127]], dtype=int8)
>>> result.scale.shape, back.dtype
((2,), dtype('float32'))
>>> bool(abs(back - x).max() < 0.01)
True

Client is for threads, AsyncClient for asyncio; both have quantize, dequantize, dynamic_quantize,
quantize_embeddings, info and health; Client has stream as well.
local() gives the same without a server, and calibrate; quantd.quantize, dequantize, dynamic_quantize, quantize_embeddings and calibrate are
its methods as functions (package quantd-core). load and save are for files of quantized tensors. Failed calls raise QuantdError.
"""

from . import checkpoints
from .aio import AsyncClient
from .calibration import Calibrated
from .client import Client
from .embeddings import PRESETS as EMBEDDING_PRESETS
from .errors import (
    ArgumentError,
    DeadlineExceededError,
    FieldViolation,
    InvalidArgumentError,
    QuantdError,
    ResourceExhaustedError,
    UnavailableError,
)
from .files import TensorFile, load, save
from .functions import calibrate, dequantize, dynamic_quantize, in_process, quantize, quantize_embeddings
from .local import Local, local
from .results import (
    Dequantized,
    DynamicQuantized,
    QuantizationError,
    Quantized,
    QuantizedEmbeddings,
    QuantizedResult,
    ServerInfo,
)
from .retry import SERVICE_CONFIG
from .safetensors import FormatError
from .shared import SharedTensor
from .stream import Stream
from .types import DataType, data_type, pack, unpack

__version__ = "0.1.0"

__all__ = [
    "ArgumentError",
    "AsyncClient",
    "Calibrated",
    "Client",
    "DataType",
    "DeadlineExceededError",
    "Dequantized",
    "DynamicQuantized",
    "EMBEDDING_PRESETS",
    "FieldViolation",
    "FormatError",
    "InvalidArgumentError",
    "Local",
    "QuantdError",
    "QuantizationError",
    "Quantized",
    "QuantizedEmbeddings",
    "QuantizedResult",
    "ResourceExhaustedError",
    "SERVICE_CONFIG",
    "ServerInfo",
    "SharedTensor",
    "Stream",
    "TensorFile",
    "UnavailableError",
    "calibrate",
    "checkpoints",
    "data_type",
    "dequantize",
    "dynamic_quantize",
    "in_process",
    "load",
    "local",
    "pack",
    "quantize",
    "quantize_embeddings",
    "save",
    "unpack",
]


def __dir__() -> "list[str]":
    return [*__all__, "__version__"]
