"""Operations: the operations and shared memory, with the same signatures and descriptions for all kinds of clients."""

from __future__ import annotations

from typing import Any, Dict, Generic, Optional, Sequence, TypeVar, Union

from . import calls, requests
from .choices import NonFinite, Symmetry, ZeroPointOrder
from .embeddings import BitOrder, BitThreshold, Preset, Recipe, SignedBits
from .results import QuantizedResult
from .shared import SharedTensor
from .types import ArrayLike, CodeTypeLike, FloatTypeLike, ScaleTypeLike

# The return type of a kind of client: a result, or an awaitable of one.
AQuantized = TypeVar("AQuantized")
ADequantized = TypeVar("ADequantized")
ADynamicQuantized = TypeVar("ADynamicQuantized")
AQuantizedEmbeddings = TypeVar("AQuantizedEmbeddings")


class Operations(calls.Caller, Generic[AQuantized, ADequantized, ADynamicQuantized, AQuantizedEmbeddings]):
    """Shared by Client and AsyncClient."""

    def _call(self, operation: str, arguments: Dict[str, Any]) -> Any:
        """The result of a called method: `arguments` are its own, by name, including `self`."""
        del arguments["self"]
        timeout = arguments.pop("timeout")
        return self._drive(calls.run(self, requests.make(operation, **arguments), timeout))

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
        out: Optional[SharedTensor] = None,
        timeout: Optional[float] = None,
    ) -> AQuantized:
        """Quantize with a given scale, as ONNX QuantizeLinear.

        y = clamp(rint(x / scale) + zero_point).

        Parameters
        ----------
        x : array_like of any shape
            float32, float16, bfloat16 or int32: numpy, torch on the CPU, any object with ``__array__`` or ``__dlpack__``.
        scale : array_like of shape (), (N,) or one per block
            One scale for the tensor; or scales of shape (x.shape[axis],); or of x's rank, one per block.
            A type that x may have, or float8_e8m0fnu. Python numbers are float32.
        zero_point : array_like of scale's shape, optional
            Of y's type. Python integers become output_type, or uint8.
        output_type : DataTypeLike, optional
            Type of y; by default zero_point's type, or else uint8.
        axis : int, optional
            Dimension of a scale of shape (N,) and of block_size; 1 by default; a negative axis counts from the end.
        block_size : int, optional
            Number of elements in a block along axis; 0: no blocks.
        block_shape : sequence of int, optional
            Length of a block along each dimension of x, -1 for the whole dimension.
        saturate : bool, optional
            For the float8 types: whether a value that is too large becomes the largest value, or else NaN or infinity.
        precision : DataTypeLike, optional
            Type of the division; scale's type by default.
        zero_point_order : {"after_rounding", "before_rounding"}, optional
            When the zero point is added: as in ONNX (the default) or as in oneDNN Graph.
        report_error : bool, optional
            Whether the result has an ``error``.
        out : SharedTensor, optional
            Memory for y, large enough and not that of an argument; y is then a view of it.
        timeout : float, optional
            Seconds that the call may take, including all retries and pieces.

        Returns
        -------
        Quantized
            The result; y has x's shape. AsyncClient returns an awaitable of it.

        Raises
        ------
        QuantdError
            When the call fails; InvalidArgumentError names the field.
        TypeError, ValueError
            For arguments that cannot be sent, such as float64 arrays.
        """
        return self._call("quantize", locals())

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
        out: Optional[SharedTensor] = None,
        timeout: Optional[float] = None,
    ) -> ADequantized:
        """Dequantize, as ONNX DequantizeLinear.

        y = (x - zero_point) * scale.

        Parameters
        ----------
        x : Quantized, DynamicQuantized, or array_like of any shape
            A result has its own scale, zero point and granularity, and is dequantized to the type that it was made from. An
            array has any output type of quantize, or int32.
        scale : array_like of shape (), (N,) or one per block, optional
            As in quantize; if x is an array, it is required.
        zero_point : array_like of scale's shape, optional
            Of x's type, or int32.
        output_type : DataTypeLike, optional
            "float32", "float16" or "bfloat16"; by default the type that a result was made from, or else scale's type.
        axis : int, optional
            As in quantize.
        block_size : int, optional
            As in quantize.
        block_shape : sequence of int, optional
            As in quantize.
        tensor_scale : array_like of shape (), optional
            One float32 that every scale is multiplied by (NVFP4).
        out : SharedTensor, optional
            As in quantize.
        timeout : float, optional
            As in quantize.

        Returns
        -------
        Dequantized
            The result; y has x's shape. AsyncClient returns an awaitable of it.

        Raises
        ------
        QuantdError
            When the call fails; InvalidArgumentError names the field.
        TypeError, ValueError
            For arguments that cannot be sent.
        """
        return self._call("dequantize", locals())

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
        symmetric: Optional[bool] = None,
        non_finite: Optional[NonFinite] = None,
        report_error: bool = False,
        out: Optional[SharedTensor] = None,
        timeout: Optional[float] = None,
    ) -> ADynamicQuantized:
        """Find scale and zero point in x, then quantize; DynamicQuantizeLinear for uint8.

        There is one scale for the tensor, or one per index of axis, per block along axis (block_size) or per block of block_shape.

        Parameters
        ----------
        x : array_like of any shape
            As in quantize.
        output_type : DataTypeLike, optional
            Type of y; uint8 by default.
        axis : int, optional
            The dimension with one scale per index; with block_size, the dimension that is cut into blocks.
        block_size : int, optional
            Number of elements in a block along axis (axis 1 by default); 0: no blocks.
        block_shape : sequence of int, optional
            Length of a block along each dimension of x, -1 for the whole dimension.
        saturate : bool, optional
            As in quantize.
        scale_type : DataTypeLike, optional
            float32 (default), float16 or bfloat16; float8_e8m0fnu gives the OCP microscaling formats with
            block_size=32, float8_e4m3fn gives NVFP4 with block_size=16. output_type="mxfp8" or "nvfp4" says all three at once.
        symmetry : {"asymmetric", "symmetric"}, optional
            Whether there is a zero point; asymmetric is the default for integers, floats are always symmetric.
        symmetric : bool, optional
            True is symmetry="symmetric", False "asymmetric".
        non_finite : {"reject", "ignore"}, optional
            Whether NaN and infinities in x are an error (the default), or are ignored when the range is found.
        report_error : bool, optional
            Whether the result has an ``error``.
        out : SharedTensor, optional
            As in quantize.
        timeout : float, optional
            As in quantize.

        Returns
        -------
        DynamicQuantized
            The result; y has x's shape; scale has shape (), (x.shape[axis],), or one element per block. AsyncClient returns an
            awaitable of it.

        Raises
        ------
        QuantdError
            When the call fails; InvalidArgumentError names the field.
        TypeError, ValueError
            For arguments that cannot be sent, such as float64 arrays.
        """
        return self._call("dynamic_quantize", locals())

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
        out: Optional[SharedTensor] = None,
        timeout: Optional[float] = None,
    ) -> AQuantizedEmbeddings:
        """Quantize embeddings to the formats of vector databases, bit for bit as their libraries do.

        The last dimension of x is the embedding; the others only count embeddings.

        Parameters
        ----------
        x : array_like of one dimension or more
            float32, float16 or bfloat16.
        preset : str, optional
            Vector database whose format to use: a name of quantd.EMBEDDING_PRESETS. It sets recipe, output_type, bit_order, bit_threshold and
            signed_bits.
        recipe : {"ranges", "unit", "direction", "bits"}, optional
            How a value is encoded, if there is no preset: its place between the lowest and the highest value of its
            dimension; its place in [-1, 1]; its share of the vector's length; one bit.
        ranges : array_like of shape (2, d), optional
            Required for "ranges": float32, the lowest and the highest value of each dimension that is used, after
            cutting off and normalising. They are never computed from x, because codes of different batches could not be compared.
        output_type : {"uint8", "int8"}, optional
            Type of y: uint8 by default, but int8 for "unit" and "direction", which have no other.
        dimensions : int, optional
            Number of values to use of each embedding, the first ones (Matryoshka); 0: all.
        normalize : bool, optional
            Whether the used part of each embedding is divided by its length first.
        bit_order : {"msb_first", "lsb_first"}, optional
            For "bits": whether the first of eight is the highest bit (the default, as numpy.packbits) or the lowest.
        bit_threshold : {"greater", "greater_or_equal"}, optional
            For "bits": whether the bit of 0 is 0 (the default) or 1.
        signed_bits : {"offset", "twos_complement"}, optional
            For "bits" in int8: the byte less 128 (the default), or its bits as they are.
        non_finite : {"reject", "ignore"}, optional
            Whether NaN and infinities in x are an error (the default), or are encoded as the recipe defines.
        report_error : bool, optional
            Whether the result has an ``error``; not with "bits".
        out : SharedTensor, optional
            As in quantize.
        timeout : float, optional
            As in quantize.

        Returns
        -------
        QuantizedEmbeddings
            The result; y has x's shape except for the last dimension, which is d, or (d + 7) // 8 for "bits". AsyncClient returns an awaitable
            of it.

        Raises
        ------
        QuantdError
            When the call fails; InvalidArgumentError names the field.
        TypeError, ValueError
            For arguments that cannot be sent, such as float64 arrays.
        """
        return self._call("quantize_embeddings", locals())
