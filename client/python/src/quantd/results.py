"""What calls return: small dataclasses of numpy arrays, which remember how they were made."""

from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Tuple, Union

import numpy as np

from .types import DataType, DataTypeLike


@dataclass(frozen=True)
class QuantizationError:
    """How far y is from x, over the finite elements of x."""

    sqnr_db: float
    mean_squared_error: float
    max_absolute_error: float
    saturated_elements: int
    non_finite_elements: int


@dataclass(frozen=True)
class QuantizedResult:
    """What Quantized and DynamicQuantized have in common: a tensor y, and everything that it takes to dequantize it.

    A result keeps the client alive that made it; after pickling or copying it has none.
    """

    y: np.ndarray

    def dequantize_arguments(self, output_type: Optional[DataTypeLike] = None) -> Dict[str, Any]:
        """The arguments of dequantize for this result, by name, but for x (which is y) and out.

        Parameters
        ----------
        output_type : DataTypeLike, optional
            Type of the dequantized tensor; without it `input_type`, of which int32 comes back as float32.

        Returns
        -------
        dict
            scale, zero_point, tensor_scale, axis, block_size, block_shape and output_type; and parameters, where there are.
        """
        if output_type is None:
            floats = (DataType.FLOAT, DataType.FLOAT16, DataType.BFLOAT16)
            output_type = self.input_type if self.input_type in floats else DataType.FLOAT
        names = ("scale", "zero_point", "tensor_scale", "axis", "block_size", "block_shape")
        found = {**{name: getattr(self, name) for name in names}, "output_type": output_type}
        return {**found, "parameters": self.parameters} if getattr(self, "parameters", None) else found

    def dequantize(self, *, output_type: Optional[DataTypeLike] = None, out: Any = None, timeout: Optional[float] = None):
        """Dequantize this result with the client that made it.

        Parameters
        ----------
        output_type : DataTypeLike, optional
            "float32", "float16" or "bfloat16"; without it the type that was quantized (float32 for int32).
        out : SharedTensor, optional
            Memory for the answer, as in `Client.dequantize`.
        timeout : float, optional
            Seconds that the call may take.

        Returns
        -------
        Dequantized
            The tensor, of y's shape. Of a result of AsyncClient an awaitable of that.
        """
        if self.engine is None:
            raise RuntimeError(
                f"this {type(self).__name__} has no client: it was unpickled, copied, loaded or made by hand; "
                "use client.dequantize(result)"
            )
        options = {} if timeout is None else {"timeout": timeout}
        return self.engine.dequantize(self, output_type=output_type, out=out, **options)

    def __getstate__(self):
        return {**self.__dict__, "engine": None}


@dataclass(frozen=True)
class Quantized(QuantizedResult):
    """Answer of quantize.

    Attributes
    ----------
    y : numpy.ndarray
        The quantized tensor, of x's shape.
    error : QuantizationError or None
        Set if report_error was.
    scale, zero_point : numpy.ndarray or None
        Those of the call, as they were then.
    axis, block_size, block_shape
        Which scale belongs to which element, as the call said it.
    input_type : DataType
        Type of x.
    original_type : str or None
        Of a result of load: the type in the first file, where that was rounded to input_type first, such as "float64".
    parameters : str or None
        Reference of the stored parameters that were used; what they say is not repeated here.
    """

    error: Optional[QuantizationError] = None
    scale: Optional[np.ndarray] = None
    zero_point: Optional[np.ndarray] = None
    tensor_scale: Optional[np.ndarray] = None
    axis: Optional[int] = None
    block_size: int = 0
    block_shape: Optional[Tuple[int, ...]] = None
    input_type: Optional[DataType] = None
    engine: Any = field(default=None, repr=False, compare=False)
    original_type: Optional[str] = None
    parameters: Optional[str] = None


@dataclass(frozen=True)
class Dequantized:
    """Answer of dequantize.

    Attributes
    ----------
    y : numpy.ndarray
        The dequantized tensor, of x's shape.
    parameters : str or None
        Reference of the stored parameters that were used.
    """

    y: np.ndarray
    parameters: Optional[str] = None


@dataclass(frozen=True)
class DynamicQuantized(QuantizedResult):
    """Answer of dynamic_quantize.

    Attributes
    ----------
    y : numpy.ndarray
        The quantized tensor, of x's shape.
    scale : numpy.ndarray
        The scales: of shape (), (N,) for an axis, or one a block.
    zero_point : numpy.ndarray or None
        Of scale's shape and y's type; None when symmetric.
    tensor_scale : numpy.ndarray or None
        NVFP4's second scale, a float32 of shape ().
    error : QuantizationError or None
        Set if report_error was.
    axis, block_size, block_shape
        Which scale belongs to which element, as the call said it.
    input_type : DataType
        Type of x.
    original_type : str or None
        Of a result of load: the type in the first file, where that was rounded to input_type first, such as "float64".
    """

    scale: np.ndarray
    zero_point: Optional[np.ndarray] = None
    tensor_scale: Optional[np.ndarray] = None
    error: Optional[QuantizationError] = None
    axis: Optional[int] = None
    block_size: int = 0
    block_shape: Optional[Tuple[int, ...]] = None
    input_type: Optional[DataType] = None
    engine: Any = field(default=None, repr=False, compare=False)
    original_type: Optional[str] = None


@dataclass(frozen=True)
class QuantizedEmbeddings:
    """Answer of quantize_embeddings.

    Attributes
    ----------
    y : numpy.ndarray
        The codes, int8 or uint8: of x's shape, but for the last dimension, which is the number of values that are used, or
        that of the bytes which hold their bits.
    error : QuantizationError or None
        Set if report_error was.
    parameters : str or None
        Reference of the stored parameters that were used.
    """

    y: np.ndarray
    error: Optional[QuantizationError] = None
    parameters: Optional[str] = None


Result = Union[Quantized, Dequantized, DynamicQuantized, QuantizedEmbeddings]


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


def error_of(message) -> Optional[QuantizationError]:
    """The error report of an answer, or None."""
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
