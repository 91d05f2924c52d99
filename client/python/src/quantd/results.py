"""What calls return: small dataclasses of numpy arrays, and the way from the wire's messages to them."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Optional, Tuple

import numpy as np

from .types import DataType, from_message

if TYPE_CHECKING:
    from .shared import SharedTensor


@dataclass(frozen=True)
class QuantizationError:
    """How far y is from x, over the finite elements of x."""

    sqnr_db: float
    mean_squared_error: float
    max_absolute_error: float
    saturated_elements: int
    non_finite_elements: int


@dataclass(frozen=True)
class Quantized:
    """Answer of quantize. error is set if report_error was."""

    y: np.ndarray
    error: Optional[QuantizationError] = None


@dataclass(frozen=True)
class Dequantized:
    """Answer of dequantize."""

    y: np.ndarray


@dataclass(frozen=True)
class DynamicQuantized:
    """Answer of dynamic_quantize. zero_point is None when symmetric; tensor_scale is NVFP4's second scale, else None."""

    y: np.ndarray
    scale: np.ndarray
    zero_point: Optional[np.ndarray] = None
    tensor_scale: Optional[np.ndarray] = None
    error: Optional[QuantizationError] = None


@dataclass(frozen=True)
class ServerInfo:
    """What a server is and what it allows."""

    version: str
    target: str
    supported_targets: Tuple[str, ...]
    threads: int
    max_message_bytes: int
    memory_budget_bytes: int
    extensions: Tuple[str, ...]


def _optional(message, field: str) -> Optional[np.ndarray]:
    return from_message(getattr(message, field)) if message.HasField(field) else None


def _y(message, out: "Optional[SharedTensor]") -> np.ndarray:
    """y of an answer: where it lies in shared memory, a view of that, of types narrower than a byte a copy."""
    if message.y.WhichOneof("contents") != "shared_memory":
        return from_message(message.y)
    return out._view(DataType(message.y.data_type), message.y.shape)


def _error(message) -> Optional[QuantizationError]:
    if not message.HasField("quantization_error"):
        return None
    error = message.quantization_error
    return QuantizationError(
        sqnr_db=error.sqnr_db,
        mean_squared_error=error.mean_squared_error,
        max_absolute_error=error.max_absolute_error,
        saturated_elements=error.saturated_elements,
        non_finite_elements=error.non_finite_elements,
    )


def quantized(message, out: "Optional[SharedTensor]" = None) -> Quantized:
    return Quantized(y=_y(message, out), error=_error(message))


def dequantized(message, out: "Optional[SharedTensor]" = None) -> Dequantized:
    return Dequantized(y=_y(message, out))


def dynamic_quantized(message, out: "Optional[SharedTensor]" = None) -> DynamicQuantized:
    return DynamicQuantized(
        y=_y(message, out),
        scale=from_message(message.y_scale),
        zero_point=_optional(message, "y_zero_point"),
        tensor_scale=_optional(message, "y_tensor_scale"),
        error=_error(message),
    )


def server_info(message) -> ServerInfo:
    return ServerInfo(
        version=message.version,
        target=message.target,
        supported_targets=tuple(message.supported_targets),
        threads=message.threads,
        max_message_bytes=message.max_message_bytes,
        memory_budget_bytes=message.memory_budget_bytes,
        extensions=tuple(message.extensions),
    )
