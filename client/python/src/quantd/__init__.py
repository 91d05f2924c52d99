"""quantd: quantize numpy arrays over gRPC, bit-exact to the ONNX operators.

    import numpy, quantd

    with quantd.Client("127.0.0.1:50051") as client:
        answer = client.dynamic_quantize(numpy.random.randn(4, 8).astype(numpy.float32))
        print(answer.y, answer.scale, answer.zero_point)
"""

from .aio import AsyncClient, AsyncStream
from .client import Client
from .errors import (
    DeadlineExceededError,
    FieldViolation,
    InvalidArgumentError,
    QuantdError,
    ResourceExhaustedError,
    UnavailableError,
)
from .files import TensorFile, load, save
from .results import Dequantized, DynamicQuantized, QuantizationError, Quantized, QuantizedResult, ServerInfo
from .retry import SERVICE_CONFIG
from .safetensors import FormatError
from .shared import SharedTensor
from .stream import Stream
from .types import DataType, data_type, pack, unpack

__version__ = "0.1.0"

__all__ = [
    "AsyncClient",
    "AsyncStream",
    "Client",
    "DataType",
    "DeadlineExceededError",
    "Dequantized",
    "DynamicQuantized",
    "FieldViolation",
    "FormatError",
    "InvalidArgumentError",
    "QuantdError",
    "QuantizationError",
    "Quantized",
    "QuantizedResult",
    "ResourceExhaustedError",
    "SERVICE_CONFIG",
    "ServerInfo",
    "SharedTensor",
    "Stream",
    "TensorFile",
    "UnavailableError",
    "data_type",
    "load",
    "pack",
    "save",
    "unpack",
]
