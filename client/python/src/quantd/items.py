"""Items: the operations as items of a stream, with the same signatures for all kinds of streams."""

from typing import Any, Dict, Generic, Optional, Sequence, TypeVar, Union

from .choices import NonFinite, Symmetry, ZeroPointOrder, integer
from .embeddings import BitOrder, BitThreshold, Preset, Recipe, SignedBits
from .errors import wrong_value
from .foreign import Array
from .results import QuantizedResult
from .types import ArrayLike, CodeTypeLike, FloatTypeLike, ScaleTypeLike, SharedMemory

# The return type of a kind of stream: a future or a task of a result.
FQuantized = TypeVar("FQuantized")
FDequantized = TypeVar("FDequantized")
FDynamicQuantized = TypeVar("FDynamicQuantized")
FQuantizedEmbeddings = TypeVar("FQuantizedEmbeddings")
# Memory for y: in this process an array of y's shape and type, otherwise a tensor in shared memory; quantd.local() accepts both.
Out = Union[Array, SharedMemory]


class Items(Generic[FQuantized, FDequantized, FDynamicQuantized, FQuantizedEmbeddings]):
    """Shared by all streams. Subclasses handle a call in `_take`: `arguments` are those of its method, by name."""

    def __init__(self, max_in_flight: int) -> None:
        if integer(max_in_flight, "max_in_flight") < 1:
            raise wrong_value("max_in_flight", f"max_in_flight is {max_in_flight}, must be 1 or more")

    def _take(self, operation: str, arguments: Dict[str, Any]) -> Any:
        raise NotImplementedError

    def quantize(
        self,
        x: ArrayLike,
        scale: ArrayLike,
        zero_point: Optional[ArrayLike] = None,
        *,
        output_type: Optional[CodeTypeLike] = None,
        axis: Optional[int] = None,
        block_size: int = 0,
        block_shape: Optional[Sequence[int]] = None,
        saturate: bool = True,
        precision: Optional[FloatTypeLike] = None,
        zero_point_order: Optional[ZeroPointOrder] = None,
        report_error: bool = False,
        out: Optional[Out] = None,
    ) -> FQuantized:
        """The client's quantize as an item of this stream."""
        return self._take("quantize", _given(locals()))

    def dequantize(
        self,
        x: Union[ArrayLike, QuantizedResult[Any]],
        scale: Optional[ArrayLike] = None,
        zero_point: Optional[ArrayLike] = None,
        *,
        output_type: Optional[FloatTypeLike] = None,
        axis: Optional[int] = None,
        block_size: int = 0,
        block_shape: Optional[Sequence[int]] = None,
        tensor_scale: Optional[ArrayLike] = None,
        out: Optional[Out] = None,
    ) -> FDequantized:
        """The client's dequantize as an item of this stream."""
        return self._take("dequantize", _given(locals()))

    def dynamic_quantize(
        self,
        x: ArrayLike,
        *,
        output_type: Optional[CodeTypeLike] = None,
        axis: Optional[int] = None,
        block_size: int = 0,
        block_shape: Optional[Sequence[int]] = None,
        saturate: bool = True,
        scale_type: Optional[ScaleTypeLike] = None,
        symmetry: Optional[Symmetry] = None,
        non_finite: Optional[NonFinite] = None,
        report_error: bool = False,
        out: Optional[Out] = None,
    ) -> FDynamicQuantized:
        """The client's dynamic_quantize as an item of this stream."""
        return self._take("dynamic_quantize", _given(locals()))

    def quantize_embeddings(
        self,
        x: ArrayLike,
        *,
        preset: Optional[Preset] = None,
        recipe: Optional[Recipe] = None,
        ranges: Optional[ArrayLike] = None,
        output_type: Optional[CodeTypeLike] = None,
        dimensions: int = 0,
        normalize: bool = False,
        bit_order: Optional[BitOrder] = None,
        bit_threshold: Optional[BitThreshold] = None,
        signed_bits: Optional[SignedBits] = None,
        non_finite: Optional[NonFinite] = None,
        report_error: bool = False,
        out: Optional[Out] = None,
    ) -> FQuantizedEmbeddings:
        """The client's quantize_embeddings as an item of this stream."""
        return self._take("quantize_embeddings", _given(locals()))


def _given(arguments: Dict[str, Any]) -> Dict[str, Any]:
    """The arguments of a method by name, from its locals()."""
    return {name: value for name, value in arguments.items() if name != "self"}
