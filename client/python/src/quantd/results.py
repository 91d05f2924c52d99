"""What calls return: small dataclasses of numpy arrays, which remember how they were made."""

import importlib
from dataclasses import dataclass, field
from typing import Any, Dict, Optional, Tuple, Union

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .types import DataType, DataTypeLike


@dataclass(frozen=True)
class QuantizationError:
    """How far y is from x, over the finite elements of x."""

    sqnr_db: float
    mean_squared_error: float
    max_absolute_error: float
    saturated_elements: int
    non_finite_elements: int


def _tensor(array: np.ndarray) -> str:
    return f"{array.dtype} {list(array.shape)}"


def _in_process(kind: str):
    """The engine of this process, for a result that knows no other."""
    try:
        return importlib.import_module(__package__).in_process()
    except ImportError as error:
        raise RuntimeError(
            f"this {kind} has no client: it was unpickled, copied, loaded or made by hand; use client.dequantize(result), "
            f"or let it be dequantized in this process, where {error}"
        ) from error


@dataclass(frozen=True, repr=False)
class QuantizedResult:
    """What Quantized and DynamicQuantized have in common: a tensor y, and everything that it takes to dequantize it.

    A result keeps the client alive that made it; after pickling or copying it has none, and is dequantized in this process where
    quantd-core is installed.
    """

    y: np.ndarray

    def __repr__(self) -> str:
        parts = [_tensor(self.y)]
        if self.scale is not None:
            parts.append(f"scale {_tensor(self.scale)}")
        if self.block_shape:
            parts.append(f"blocks {list(self.block_shape)}")
        elif self.block_size:
            parts.append(f"blocks of {self.block_size} along axis {1 if self.axis is None else self.axis}")
        elif self.axis is not None:
            parts.append(f"axis {self.axis}")
        if self.error is not None:
            parts.append(f"SQNR {self.error.sqnr_db:.2f} dB")
        return f"<{type(self).__name__} {', '.join(parts)}>"

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
        """Dequantize this result with the client that made it; where there is none, in this process.

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
        engine = _in_process(type(self).__name__) if self.engine is None else self.engine
        options = {} if timeout is None else {"timeout": timeout}
        return engine.dequantize(self, output_type=output_type, out=out, **options)

    def __getstate__(self):
        return {**self.__dict__, "engine": None}


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True, repr=False, eq=False)
class Dequantized(NDArrayOperatorsMixin):
    """Answer of dequantize. As an operand, an index and an argument of numpy's functions it is its y: `result.dequantize() - x`.

    Attributes
    ----------
    y : numpy.ndarray
        The dequantized tensor, of x's shape.
    parameters : str or None
        Reference of the stored parameters that were used.
    """

    y: np.ndarray
    parameters: Optional[str] = None

    @property
    def shape(self) -> Tuple[int, ...]:
        return self.y.shape

    @property
    def dtype(self) -> np.dtype:
        return self.y.dtype

    @property
    def ndim(self) -> int:
        return self.y.ndim

    @property
    def size(self) -> int:
        return self.y.size

    def __array__(self, dtype=None, copy=None) -> np.ndarray:
        if copy is False and dtype is not None and np.dtype(dtype) != self.y.dtype:
            raise ValueError(f"{self.y.dtype} becomes {np.dtype(dtype)} only in a copy")
        return self.y.astype(self.y.dtype if dtype is None else dtype, copy=bool(copy))

    def __array_ufunc__(self, function, method, *inputs, **options):
        def plain(value):
            return value.y if isinstance(value, Dequantized) else value

        out = options.get("out")
        options = {name: tuple(map(plain, value)) if isinstance(value, tuple) else plain(value) for name, value in options.items()}
        result = getattr(function, method)(*map(plain, inputs), **options)
        return out[0] if out and len(out) == 1 else result  # d -= x leaves d what it was

    @property
    def T(self) -> np.ndarray:
        return self.y.T

    def __float__(self) -> float:
        return float(self.y)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index):
        return self.y[index]

    def __repr__(self) -> str:
        return f"<Dequantized {_tensor(self.y)}>"


@dataclass(frozen=True, repr=False)
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


@dataclass(frozen=True, repr=False)
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

    def __repr__(self) -> str:
        report = "" if self.error is None else f", SQNR {self.error.sqnr_db:.2f} dB"
        return f"<QuantizedEmbeddings {_tensor(self.y)}{report}>"


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
