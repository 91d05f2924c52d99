"""quantd: quantize numpy arrays over gRPC, bit-exact to the ONNX operators.

    import numpy, quantd

    with quantd.Client("127.0.0.1:50051") as client:
        answer = client.dynamic_quantize(numpy.random.randn(4, 8).astype(numpy.float32))
        print(answer.y, answer.scale, answer.zero_point)
"""

from .client import Client
from .errors import (
    DeadlineExceededError,
    FieldViolation,
    InvalidArgumentError,
    QuantdError,
    ResourceExhaustedError,
    UnavailableError,
)
from .local import Local, local
from .results import Dequantized, DynamicQuantized, QuantizationError, Quantized, ServerInfo
from .shared import SharedTensor
from .stream import Stream
from .types import DataType, data_type, pack, unpack

__version__ = "0.1.0"

__all__ = [
    "Client",
    "DataType",
    "DeadlineExceededError",
    "Dequantized",
    "DynamicQuantized",
    "FieldViolation",
    "InvalidArgumentError",
    "Local",
    "QuantdError",
    "QuantizationError",
    "Quantized",
    "ResourceExhaustedError",
    "ServerInfo",
    "SharedTensor",
    "Stream",
    "UnavailableError",
    "data_type",
    "local",
    "pack",
    "unpack",
]
