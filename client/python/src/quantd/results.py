"""The results of calls: small dataclasses of numpy arrays, with the data that is needed to dequantize them."""

import importlib
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Dict, Generic, Mapping, NoReturn, Optional, Tuple, Type, Union

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from .errors import wrong_type
from .foreign import Array
from .types import DataType, FloatTypeLike, SharedMemory, data_type, described

if TYPE_CHECKING:  # the type of a result's dequantize: an awaitable for AsyncClient's results
    from typing_extensions import TypeVar

    _Back = TypeVar("_Back", default="Dequantized")
else:
    from typing import TypeVar

    _Back = TypeVar("_Back")


@dataclass(frozen=True)
class QuantizationError:
    """The difference between y and x, over the finite elements of x."""

    sqnr_db: float
    mean_squared_error: float
    max_absolute_error: float
    saturated_elements: int
    non_finite_elements: int


def _in_process(result: "QuantizedResult[Any]") -> Any:
    """The engine of this process, for results without a client."""
    what = f"this {type(result).__name__} has no client: it was unpickled, copied, loaded or made by hand"
    try:
        return importlib.import_module(__package__).in_process()
    except ImportError as error:
        raise RuntimeError(
            f"{what}; use client.dequantize(result), or let it be dequantized in this process, where {error}") from error


class _OfY:
    """What all results share."""

    y: Array

    @property
    def shape(self) -> Tuple[int, ...]:
        """The shape of y."""
        return self.y.shape

    @property
    def dtype(self) -> "np.dtype[Any]":
        """The type of y."""
        return self.y.dtype


@dataclass(frozen=True, repr=False, eq=False)
class QuantizedResult(_OfY, Generic[_Back]):
    """What Quantized and DynamicQuantized share: a tensor y, and everything that is needed to dequantize it.

    A result keeps the client that made it alive. After pickling or copying it has no client, and is dequantized in this process if
    quantd-core is installed. It is not an array: `y` has its codes, `dequantize()` returns its values.
    """

    y: Array
    scale: Array
    zero_point: Optional[Array] = None
    tensor_scale: Optional[Array] = None
    error: Optional[QuantizationError] = None
    axis: Optional[int] = None
    block_size: int = 0
    block_shape: Optional[Tuple[int, ...]] = None
    input_type: Optional[DataType] = None
    engine: Any = field(default=None, compare=False)
    original_type: Optional[str] = None

    @property
    def nbytes(self) -> int:
        """The bytes of y, packed, and of its scales and zero points: what a file or a message has of it."""
        parts = (self.y, self.scale, self.zero_point, self.tensor_scale)
        return sum(data_type(part.dtype).byte_size(part.size) for part in parts if part is not None)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> NoReturn:
        raise TypeError(f"{self!r} is not an array: its codes are result.y, its values result.dequantize().y")

    def __repr__(self) -> str:
        parts = [described(self.y), f"scale {described(self.scale)}"]
        if self.block_shape:
            parts.append(f"blocks {list(self.block_shape)}")
        elif self.block_size:
            parts.append(f"blocks of {self.block_size} along axis {1 if self.axis is None else self.axis}")
        elif self.axis is not None:
            parts.append(f"axis {self.axis}")
        if self.error is not None:
            parts.append(f"SQNR {self.error.sqnr_db:.2f} dB")
        return f"<{type(self).__name__} {', '.join(parts)}>"

    def dequantize_arguments(self, output_type: Optional[FloatTypeLike] = None) -> Dict[str, Any]:
        """The arguments of dequantize for this result, by name, except x (which is y) and out.

        Parameters
        ----------
        output_type : DataTypeLike, optional
            Type of the dequantized tensor; by default `input_type`, or float32 if that is int32.

        Returns
        -------
        dict
            scale, zero_point, tensor_scale, axis, block_size, block_shape and output_type.
        """
        if output_type is None:
            floats = (DataType.FLOAT, DataType.FLOAT16, DataType.BFLOAT16)
            output_type = self.input_type if self.input_type in floats else DataType.FLOAT
        names = ("scale", "zero_point", "tensor_scale", "axis", "block_size", "block_shape")
        return {**{name: getattr(self, name) for name in names}, "output_type": output_type}

    def dequantize(
        self, *, output_type: Optional[FloatTypeLike] = None, out: Union[Array, SharedMemory, None] = None, timeout: Optional[float] = None
    ) -> _Back:
        """Dequantize this result with the client that made it, or without one in this process.

        Parameters
        ----------
        output_type : DataTypeLike, optional
            "float32", "float16" or "bfloat16"; by default the type that was quantized (float32 for int32).
        out : SharedTensor, optional
            Memory for the answer, as in `Client.dequantize`.
        timeout : float, optional
            Seconds that the call may take.

        Returns
        -------
        Dequantized
            The tensor, of y's shape. A result of AsyncClient returns an awaitable of it.
        """
        engine = _in_process(self) if self.engine is None else self.engine
        return engine.dequantize(self, output_type=output_type, out=out, timeout=timeout)

    def __getstate__(self) -> Dict[str, Any]:
        return {**self.__dict__, "engine": None}


@dataclass(frozen=True, repr=False, eq=False)
class Quantized(QuantizedResult[_Back]):
    """Answer of quantize.

    Attributes
    ----------
    y : numpy.ndarray
        The quantized tensor, of x's shape.
    error : QuantizationError or None
        Set if report_error was.
    scale : numpy.ndarray
    zero_point : numpy.ndarray or None
        Copies of the arguments of the call.
    axis, block_size, block_shape
        Which scale belongs to which element, as in the call.
    input_type : DataType
        Type of x.
    original_type : str or None
        Only of a result of load: the original type, such as "float64", if the tensor was rounded to input_type before it was quantized.
    """


@dataclass(frozen=True, repr=False, eq=False)
class Dequantized(_OfY, NDArrayOperatorsMixin):
    """Answer of dequantize. As an operand, an index and an argument of numpy's functions it acts as its y: `result.dequantize() - x`.

    Attributes
    ----------
    y : numpy.ndarray
        The dequantized tensor, of x's shape.
    """

    y: Array

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "y":  # attributes of y's class are defined here; y itself is missing while this is unpickled
            raise AttributeError(name)
        return getattr(self.y, name)

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Array:
        if copy is False and dtype is not None and np.dtype(dtype) != self.y.dtype:
            raise ValueError(f"{self.y.dtype} becomes {np.dtype(dtype)} only in a copy")
        return self.y.astype(self.y.dtype if dtype is None else dtype, copy=bool(copy))

    def __array_ufunc__(self, function: Any, method: str, *inputs: Any, **options: Any) -> Any:
        def plain(value: Any) -> Any:
            return value.y if isinstance(value, Dequantized) else value

        out = options.get("out")
        options = {name: tuple(map(plain, value)) if isinstance(value, tuple) else plain(value) for name, value in options.items()}
        result = getattr(function, method)(*map(plain, inputs), **options)
        return out[0] if out and len(out) == 1 else result  # d -= x leaves d unchanged

    def __float__(self) -> float:
        return float(self.y)

    def __int__(self) -> int:
        return int(self.y)

    def __bool__(self) -> bool:
        return bool(self.y)

    def __len__(self) -> int:
        return len(self.y)

    def __getitem__(self, index: Any) -> Any:
        return self.y[index]

    def __setitem__(self, index: Any, value: Any) -> None:
        self.y[index] = value

    def __repr__(self) -> str:
        return f"<Dequantized {described(self.y)}>"


@dataclass(frozen=True, repr=False, eq=False)
class DynamicQuantized(QuantizedResult[_Back]):
    """Answer of dynamic_quantize.

    Attributes
    ----------
    y : numpy.ndarray
        The quantized tensor, of x's shape.
    scale : numpy.ndarray
        The scales: of shape (), (N,) for an axis, or one per block.
    zero_point : numpy.ndarray or None
        Of scale's shape and y's type; None when symmetric.
    tensor_scale : numpy.ndarray or None
        NVFP4's second scale, a float32 of shape ().
    error : QuantizationError or None
        Set if report_error was.
    axis, block_size, block_shape
        Which scale belongs to which element, as in the call.
    input_type : DataType
        Type of x.
    original_type : str or None
        Only of a result of load: the original type, such as "float64", if the tensor was rounded to input_type before it was quantized.
    """


@dataclass(frozen=True, repr=False, eq=False)
class QuantizedEmbeddings(_OfY):
    """Answer of quantize_embeddings.

    Attributes
    ----------
    y : numpy.ndarray
        The codes, int8 or uint8, of x's shape except for the last dimension, which is the number of values that are used, or of
        the bytes that contain their bits.
    error : QuantizationError or None
        Set if report_error was.
    """

    y: Array
    error: Optional[QuantizationError] = None

    def __array__(self, dtype: Any = None, copy: Optional[bool] = None) -> Array:
        return np.asarray(self.y, dtype) if copy is None else np.array(self.y, dtype, copy=copy)

    @property
    def nbytes(self) -> int:
        """The bytes of y."""
        return self.y.nbytes

    def __repr__(self) -> str:
        report = "" if self.error is None else f", SQNR {self.error.sqnr_db:.2f} dB"
        return f"<QuantizedEmbeddings {described(self.y)}{report}>"


Result = Union[Quantized[Any], Dequantized, DynamicQuantized[Any], QuantizedEmbeddings]
_Kind = TypeVar("_Kind")


def quantized(
    kind: Type[_Kind],
    y: Array,
    scale: Array,
    zero_point: Optional[Array],
    tensor_scale: Optional[Array],
    error: Optional[QuantizationError],
    granularity: Tuple[Optional[int], int, Optional[Tuple[int, ...]]],
    input_type: DataType,
    engine: Any,
) -> _Kind:
    """A Quantized or DynamicQuantized. granularity: axis, block_size and block_shape.

    Not through the constructor: a frozen dataclass takes 0.2 us per field there, as long as 1,000 elements take.
    """
    result = object.__new__(kind)
    fields = result.__dict__  # as keyword arguments of update() they would take another 0.2 us
    fields["y"], fields["scale"], fields["zero_point"] = y, scale, zero_point
    fields["tensor_scale"], fields["error"] = tensor_scale, error
    fields["axis"], fields["block_size"], fields["block_shape"] = granularity
    fields["input_type"], fields["engine"] = input_type, engine
    return result


# The error of dequantize without a scale.
NO_SCALE = "scale is missing: give it, or the result of quantize or dynamic_quantize as x"


def arguments_of(result: QuantizedResult[Any], given: Mapping[str, Any]) -> Dict[str, Any]:
    """The arguments of dequantize that a result contains; giving one of them again is an error."""
    names = ("scale", "zero_point", "axis", "block_size", "block_shape", "tensor_scale")
    twice = [name for name in names if given.get(name) is not None and not (name == "block_size" and given[name] == 0)]
    if twice:
        raise wrong_type(
            twice[0], f"x is a {type(result).__name__}, which has its own {' and '.join(twice)}; to use others, pass x.y")
    return result.dequantize_arguments(given.get("output_type"))


@dataclass(frozen=True)
class ServerInfo:
    """The version and the limits of a server."""

    version: str
    target: str
    supported_targets: Tuple[str, ...]
    threads: int
    max_message_bytes: int
    memory_budget_bytes: int
    extensions: Tuple[str, ...]


def error_of(message: Any) -> Optional[QuantizationError]:
    """The error report of an answer, or None."""
    if not message.HasField("quantization_error"):
        return None
    error = message.quantization_error
    return QuantizationError(**{part.name: getattr(error, part.name) for part in fields(QuantizationError)})
