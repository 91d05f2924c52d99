"""Operations: the operations and shared memory, with one signature and one description for every kind of client."""

from typing import Any, Dict, Generic, Optional, Sequence, TypeVar, Union

from . import requests
from .choices import NonFinite, Symmetry, ZeroPointOrder
from .embeddings import BitOrder, BitThreshold, Preset, Recipe, SignedBits
from .parameter_set import Parameters
from .results import QuantizedResult
from .shared import SharedTensor
from .types import ArrayLike, CodeTypeLike, FloatTypeLike, ScaleTypeLike

# What a kind of client returns: a result, or an awaitable of one.
AQuantized = TypeVar("AQuantized")
ADequantized = TypeVar("ADequantized")
ADynamicQuantized = TypeVar("ADynamicQuantized")
AQuantizedEmbeddings = TypeVar("AQuantizedEmbeddings")


class Operations(Generic[AQuantized, ADequantized, ADynamicQuantized, AQuantizedEmbeddings]):
    """What Client and AsyncClient share. A kind of client says in `_run` how a request becomes a result."""

    def _run(self, request: requests.Request, timeout: Optional[float]) -> Any:
        raise NotImplementedError

    def _call(self, operation: str, arguments: Dict[str, Any]) -> Any:
        """The result of a method that was called: `arguments` are its own, by name, its `self` among them."""
        del arguments["self"]
        timeout = arguments.pop("timeout")
        return self._run(requests.make(operation, **arguments), timeout)

    def quantize(
        self,
        x: ArrayLike,
        scale: Optional[ArrayLike] = None,
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
        parameters: Optional[Parameters] = None,
        timeout: Optional[float] = None,
    ) -> AQuantized:
        """Quantize with a given scale, as ONNX QuantizeLinear.

        y = clamp(rint(x / scale) + zero_point).

        Parameters
        ----------
        x : array_like of any shape
            float32, float16, bfloat16 or int32: numpy, torch on the CPU, anything with ``__array__`` or ``__dlpack__``.
        scale : array_like of shape (), (N,) or one a block, optional
            Must be there unless parameters have it. One for the tensor; or of shape (x.shape[axis],); or of x's rank, one a block. A type of x, or
            float8_e8m0fnu. Python numbers are float32.
        zero_point : array_like of scale's shape, optional
            Of y's type. Python integers take output_type, or uint8.
        output_type : DataTypeLike, optional
            Type of y; without it zero_point's type, else uint8.
        axis : int, optional
            Dimension of a scale of shape (N,) and of block_size; 1 when unset; negative ones count from the end.
        block_size : int, optional
            Elements a block along axis; 0: no blocks.
        block_shape : sequence of int, optional
            Length of a block along each dimension of x, -1 for the whole dimension.
        saturate : bool, optional
            For the float8 types: whether what is too large becomes the largest value, or else NaN or infinity.
        precision : DataTypeLike, optional
            Type of the division, when not that of scale.
        zero_point_order : {"after_rounding", "before_rounding"}, optional
            When the zero point is added: as ONNX (the default) or as oneDNN Graph.
        report_error : bool, optional
            Whether the result carries ``error``.
        out : SharedTensor, optional
            Memory for y, large enough and none of the arguments; y is then a view of it.
        parameters : str or ParameterSet, optional
            Stored parameters that have what is left out here: "name@sha256:HEX", the name where one set has it, or what
            put_parameters returned; with that, a server that does not have the set is given it.
        timeout : float, optional
            Seconds that the call may take, with all of its retries and pieces.

        Returns
        -------
        Quantized
            The result: y has x's shape. Of AsyncClient an awaitable of it.

        Raises
        ------
        QuantdError
            When the call fails; InvalidArgumentError names the field.
        TypeError, ValueError
            For arguments that have no form on the wire, such as float64 arrays.
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
        parameters: Optional[Parameters] = None,
        timeout: Optional[float] = None,
    ) -> ADequantized:
        """Dequantize, as ONNX DequantizeLinear.

        y = (x - zero_point) * scale.

        Parameters
        ----------
        x : Quantized, DynamicQuantized, or array_like of any shape
            A result brings its scale, zero point and granularity, and comes back in the type that it was made of. An
            array is of any output type of quantize, or int32.
        scale : array_like of shape (), (N,) or one a block, optional
            As in quantize; must be there, or in parameters, when x is an array.
        zero_point : array_like of scale's shape, optional
            Of x's type, or int32.
        output_type : DataTypeLike, optional
            "float32", "float16" or "bfloat16"; without it the type that a result was made of, or else scale's type.
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
        parameters : str or ParameterSet, optional
            As in quantize: those of quantize, of which scale, zero_point, axis, block_size and block_shape are taken.
        timeout : float, optional
            As in quantize.

        Returns
        -------
        Dequantized
            The result: y has x's shape. Of AsyncClient an awaitable of it.

        Raises
        ------
        QuantdError
            When the call fails; InvalidArgumentError names the field.
        TypeError, ValueError
            For arguments that have no form on the wire.
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
        non_finite: Optional[NonFinite] = None,
        report_error: bool = False,
        out: Optional[SharedTensor] = None,
        timeout: Optional[float] = None,
    ) -> ADynamicQuantized:
        """Find scale and zero point in x, then quantize; DynamicQuantizeLinear for uint8.

        One scale for the tensor, or one an index along axis, a block along axis (block_size) or a block of block_shape.

        Parameters
        ----------
        x : array_like of any shape
            As in quantize.
        output_type : DataTypeLike, optional
            Type of y; uint8 when unset.
        axis : int, optional
            One scale an index along this dimension; with block_size, the dimension that is cut into blocks.
        block_size : int, optional
            Elements a block along axis (1 when unset); 0: no blocks.
        block_shape : sequence of int, optional
            Length of a block along each dimension of x, -1 for the whole dimension.
        saturate : bool, optional
            As in quantize.
        scale_type : DataTypeLike, optional
            float32 (default), float16 or bfloat16; float8_e8m0fnu gives the OCP microscaling formats with
            block_size=32, float8_e4m3fn gives NVFP4 with block_size=16.
        symmetry : {"asymmetric", "symmetric"}, optional
            Whether there is a zero point; asymmetric is the default for integers, floats are always symmetric.
        non_finite : {"reject", "ignore"}, optional
            What NaN and infinities in x do: an error (the default), or no part in finding the range.
        report_error : bool, optional
            Whether the result carries ``error``.
        out : SharedTensor, optional
            As in quantize.
        timeout : float, optional
            As in quantize.

        Returns
        -------
        DynamicQuantized
            The result: y has x's shape; scale has shape (), (x.shape[axis],), or one element a block. Of AsyncClient an
            awaitable of it.

        Raises
        ------
        QuantdError
            When the call fails; InvalidArgumentError names the field.
        TypeError, ValueError
            For arguments that have no form on the wire, such as float64 arrays.
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
        parameters: Optional[Parameters] = None,
        timeout: Optional[float] = None,
    ) -> AQuantizedEmbeddings:
        """Make the codes that vector databases have for embeddings, as their libraries make them.

        The last dimension of x is the embedding; the others only count embeddings.

        Parameters
        ----------
        x : array_like of one dimension or more
            float32, float16 or bfloat16.
        preset : str, optional
            Vector database whose format to use: a name of quantd.EMBEDDING_PRESETS. It stands for recipe, output_type, bit_order, bit_threshold and
            signed_bits.
        recipe : {"ranges", "unit", "direction", "bits"}, optional
            What becomes of a value, when no preset says so: its place between the lowest and the highest value of its
            dimension; that of [-1, 1]; its share of the vector's length; one bit.
        ranges : array_like of shape (2, d), optional
            For "ranges", which needs them: float32, the lowest and the highest value of each dimension that is used, after
            cutting off and normalising. They are never taken from x: codes of different batches could not be compared.
        output_type : {"uint8", "int8"}, optional
            Type of y: uint8 when unset, but int8 for "unit" and "direction", which have no other.
        dimensions : int, optional
            Of each embedding only the first so many values are used (Matryoshka); 0: all.
        normalize : bool, optional
            Whether each embedding, as far as it is used, is divided by its length first.
        bit_order : {"msb_first", "lsb_first"}, optional
            For "bits": whether the first of eight is the highest bit (the default, as numpy.packbits) or the lowest.
        bit_threshold : {"greater", "greater_or_equal"}, optional
            For "bits": whether the bit of 0 is 0 (the default) or 1.
        signed_bits : {"offset", "twos_complement"}, optional
            For "bits" in int8: the byte less 128 (the default), or its bits as they are.
        non_finite : {"reject", "ignore"}, optional
            What NaN and infinities in x are: an error (the default), or as the recipe has them.
        report_error : bool, optional
            Whether the result carries ``error``; not with "bits".
        out : SharedTensor, optional
            As in quantize.
        parameters : str or ParameterSet, optional
            As in quantize: those of quantize_embeddings.
        timeout : float, optional
            As in quantize.

        Returns
        -------
        QuantizedEmbeddings
            The result: y has x's shape, but for the last dimension: d, or (d + 7) // 8 for "bits". Of AsyncClient an awaitable
            of it.

        Raises
        ------
        QuantdError
            When the call fails; InvalidArgumentError names the field.
        TypeError, ValueError
            For arguments that have no form on the wire, such as float64 arrays.
        """
        return self._call("quantize_embeddings", locals())
