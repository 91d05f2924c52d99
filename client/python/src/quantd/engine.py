"""Engine: the operations of Client, computed in this process by the native module of quantd-core."""

from __future__ import annotations

import os
import sys
from typing import Any, Optional, Sequence, Tuple, Union

from grpc import StatusCode

from . import calibration, embeddings, errors, results
from .choices import (
    NON_FINITES, SYMMETRIES, ZERO_POINT_ORDERS, NonFinite, Symmetry, ZeroPointOrder, choice, flag, integer, integers, seconds, symmetry_of,
    type_number, warn_of_lost_signs)
from .embeddings import BitOrder, BitThreshold, Preset, Recipe, SignedBits
from .engine_calibrate import calibrate
from .foreign import Array
from .types import ArrayLike, CodeTypeLike, DataType, FloatTypeLike, Out, ScaleTypeLike, as_array, data_type, spelled_out

_VARIABLE = "QUANTD_THREADS"
_CODES = {code.value[0]: code for code in StatusCode}
_TYPES = {int(kind): kind for kind in DataType}  # DataType(number) takes as long as a small call's arithmetic


def _fail(code: int, message: str, field: str) -> errors.QuantdError:
    """What Client raises for the server's answer of the same code, text and field."""
    status = _CODES[code]
    violations = [errors.FieldViolation(field, message)] if field else []
    return errors.of_code(status, message, violations, reason=status.name, metadata={})


def _report(error: Any) -> Optional[results.QuantizationError]:
    return None if error is None else results.QuantizationError(*error)


def _thread_count(threads: Any, name: str, most: int) -> int:
    try:
        count = int(threads) if isinstance(threads, str) else threads.__index__()
    except (AttributeError, ValueError):
        raise errors.wrong_type(name, f"{name} is {threads!r}, must be a number from 1 to {most}") from None
    if not 1 <= count <= most:
        raise errors.wrong_value(name, f"{name} is {count}, must be from 1 to {most}")
    return count


def _blocks(axis: Any, block_size: Any, block_shape: Any) -> Tuple[Optional[int], int, Optional[Tuple[int, ...]]]:
    return (
        None if axis is None else integer(axis, "axis"),
        integer(block_size, "block_size"),
        None if block_shape is None else integers(block_shape, "block_shape"),
    )


class Engine:
    """quantd in this process: Client's methods, without a server. Thread safe.

        with Engine(threads=4) as engine:
            answer = engine.dynamic_quantize(x, output_type="int8", axis=0)

    Parameters
    ----------
    threads : int, optional
        Threads that a call may compute on, 1 to 1024, including the caller's; by default QUANTD_THREADS, or else the
        CPUs that this process may use. All engines share the threads. After os.fork, if the parent had computed, a call of the
        child computes on the caller's thread alone.
    timeout : float, optional
        Seconds that a call may take if it has no timeout of its own.

    Arrays are those of numpy and ml_dtypes, in native or swapped byte order, with any strides; objects with `__dlpack__` (torch,
    JAX) are read in place. Large calls release the GIL, and end with KeyboardInterrupt when Ctrl-C is pressed. Nobody may
    change an argument while a call computes.

    Calls raise what Client raises: InvalidArgumentError with the server's text and fields, DeadlineExceededError,
    TypeError and ValueError. An `out` that can't take y is a ValueError.
    """

    _extensions: Tuple[str, ...] = ("embeddings", "calibrate")

    def __init__(self, threads: Optional[int] = None, *, timeout: Optional[float] = None):
        from quantd_core import _native

        self._most_threads = _native.MOST_THREADS
        if threads is None and os.environ.get(_VARIABLE):
            self._threads = _thread_count(os.environ[_VARIABLE], _VARIABLE, self._most_threads)
        elif threads is None:
            self._threads = min(_native.default_threads(), self._most_threads)
        else:
            self._threads = _thread_count(threads, "threads", self._most_threads)
        if _native.target_error():
            raise ValueError(_native.target_error())
        self._timeout = seconds(timeout)
        _native.set_dtypes([(int(kind), kind.dtype) for kind in DataType])
        self._native = _native.Engine(self._operand, self._place, _fail)

    @staticmethod
    def _operand(value: Any, name: str, default: int) -> Array:
        """An array of a type that quantd has, in native byte order, of what is none."""
        array = as_array(value, name, DataType(default))
        return array.astype(data_type(array.dtype).dtype, copy=False)

    @staticmethod
    def _place(out: Any) -> Tuple[Array, str]:
        """Packed bytes and their name, of an `out` that is not an array."""
        raise errors.wrong_type(
            "out", f"out is {type(out).__name__}, must be a numpy array (of a torch tensor on the CPU, .numpy() is a view)"
        )

    def _limits(self, timeout: Optional[float], threads: Optional[int]) -> Tuple[Optional[float], int]:
        count = self._threads if threads is None else _thread_count(threads, "threads", self._most_threads)
        return self._timeout if timeout is None else seconds(timeout), count

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
        timeout: Optional[float] = None,
        threads: Optional[int] = None,
    ) -> "results.Quantized[results.Dequantized]":
        """Quantize with a given scale, as ONNX QuantizeLinear: y = clamp(rint(x / scale) + zero_point).

        Arguments and result are those of Client.quantize, except:

        Parameters
        ----------
        out : numpy.ndarray, optional
            Memory for y, of y's shape and type, which overlaps no argument; the result's y is this array.
        threads : int, optional
            Threads for this call; by default the engine's.
        """
        if scale is None:
            raise errors.wrong_type("scale", "scale is missing")
        blocks = _blocks(axis, block_size, block_shape)
        y, error, kept_scale, kept_zero_point, input_type = self._native.quantize(
            x,
            scale,
            zero_point,
            type_number(output_type, "output_type"),
            *blocks,
            flag(saturate, "saturate", True),
            type_number(precision, "precision"),
            choice(zero_point_order, ZERO_POINT_ORDERS, "zero_point_order") == 2,
            flag(report_error, "report_error", False),
            out,
            *self._limits(timeout, threads),
        )
        return results.quantized(
            results.Quantized, y, kept_scale, kept_zero_point, None, _report(error), blocks, _TYPES[input_type], self)

    def dequantize(
        self,
        x: Union[ArrayLike, results.QuantizedResult[Any]],
        scale: Optional[ArrayLike] = None,
        zero_point: Optional[ArrayLike] = None,
        *,
        output_type: Optional[FloatTypeLike] = None,
        axis: Optional[int] = None,
        block_size: int = 0,
        block_shape: Optional[Sequence[int]] = None,
        tensor_scale: Optional[ArrayLike] = None,
        out: Optional[Out] = None,
        timeout: Optional[float] = None,
        threads: Optional[int] = None,
    ) -> results.Dequantized:
        """Dequantize, as ONNX DequantizeLinear: y = (x - zero_point) * scale.

        Arguments and result are those of Client.dequantize; `out` and `threads` as in quantize.
        """
        if hasattr(x, "dequantize_arguments"):  # a result, which brings them
            given = results.arguments_of(x, locals())
            return self.dequantize(x.y, **given, out=out, timeout=timeout, threads=threads)
        if scale is None:
            raise errors.wrong_type("scale", results.NO_SCALE)
        y = self._native.dequantize(
            x,
            scale,
            zero_point,
            type_number(output_type, "output_type"),
            *_blocks(axis, block_size, block_shape),
            tensor_scale,
            out,
            *self._limits(timeout, threads),
        )
        return results.Dequantized(y)

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
        out: Optional[Out] = None,
        timeout: Optional[float] = None,
        threads: Optional[int] = None,
    ) -> "results.DynamicQuantized[results.Dequantized]":
        """Find scale and zero point in x, then quantize; DynamicQuantizeLinear for uint8.

        Arguments and result are those of Client.dynamic_quantize; `out` and `threads` as in quantize.
        """
        said = spelled_out({"output_type": output_type, "scale_type": scale_type, "axis": axis, "block_size": block_size})
        blocks = _blocks(said["axis"], said["block_size"], block_shape)
        symmetry = symmetry_of(symmetry, symmetric)
        if symmetry == "symmetric":
            code_type = type_number(said["output_type"], "output_type")
            warn_of_lost_signs(self._operand(x, "x", DataType.FLOAT), code_type, SYMMETRIES["symmetric"])
        y, scale, zero_point, tensor_scale, error, input_type = self._native.dynamic_quantize(
            x,
            type_number(said["output_type"], "output_type"),
            *blocks,
            flag(saturate, "saturate", True),
            type_number(said["scale_type"], "scale_type"),
            choice(symmetry, SYMMETRIES, "symmetry"),
            choice(non_finite, NON_FINITES, "non_finite") == 2,
            flag(report_error, "report_error", False),
            out,
            *self._limits(timeout, threads),
        )
        return results.quantized(
            results.DynamicQuantized, y, scale, zero_point, tensor_scale, _report(error), blocks, _TYPES[input_type], self)

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
        timeout: Optional[float] = None,
        threads: Optional[int] = None,
    ) -> results.QuantizedEmbeddings:
        """Quantize embeddings to the formats of vector databases, bit for bit as their libraries do.

        Arguments and result are those of Client.quantize_embeddings; `out` and `threads` as in quantize.
        """
        named = embeddings.numbers(preset, non_finite, ranges, recipe=recipe, output_type=output_type, bit_order=bit_order,
                                   bit_threshold=bit_threshold, signed_bits=signed_bits)
        y, error = self._native.quantize_embeddings(
            x,
            ranges,
            named["recipe"],
            named["output_type"],
            integer(dimensions, "dimensions"),
            flag(normalize, "normalize", False),
            named["bit_order"],
            named["bit_threshold"],
            named["signed_bits"],
            named["non_finite"] == 2,
            flag(report_error, "report_error", False),
            out,
            *self._limits(timeout, threads),
        )
        return results.QuantizedEmbeddings(y, _report(error))

    def calibrate(
        self,
        xs: calibration.Arrays = (),
        *,
        method: Optional[calibration.Method] = "min_max",
        output_type: Optional[CodeTypeLike] = None,
        axis: Optional[int] = None,
        symmetry: Optional[Symmetry] = None,
        symmetric: Optional[bool] = None,
        percentile: Optional[float] = None,
        non_finite: Optional[NonFinite] = None,
        return_state: bool = False,
        states: calibration.States = (),
        timeout: Optional[float] = None,
        threads: Optional[int] = None,
    ) -> calibration.Calibrated:
        """Find scale, zero point and range of many arrays.

        The result is a function of all values together: their order, their division into arrays, and the workers that
        counted them change no bit. An endless iterator takes no memory.

        Parameters
        ----------
        xs : array_like, or iterable of array_like
            float32, float16, bfloat16 or int32 of any shape that has the axis.
        method : {"min_max", "percentile", "entropy", "mse"}, optional
            Which range is chosen: that of all values (the default); of all but the outermost few; the one that loses the least
            information; the one with the smallest mean squared error. The last two are for integers only.
        output_type : DataTypeLike, optional
            The type that will be quantized to; uint8 by default.
        axis : int, optional
            The dimension with one scale per index, where all arrays have the same length; by default there is one scale.
        symmetry : {"asymmetric", "symmetric"}, optional
            As in dynamic_quantize.
        symmetric : bool, optional
            True is symmetry="symmetric", False "asymmetric".
        percentile : float, optional
            For "percentile": how many of 100 values the range covers, above 50 and at most 100; 99.99 by default.
        non_finite : {"reject", "ignore"}, optional
            Whether NaN and infinities are an error (the default), or are counted and left out.
        return_state : bool, optional
            Whether the result has a ``state``.
        states : bytes, or iterable of bytes, optional
            The states of other results, which are added to this call's values.
        timeout : float, optional
            Seconds that the call may take, including the time to make the arrays.
        threads : int, optional
            As in quantize.

        Returns
        -------
        Calibrated
            The result, with a scale of shape () or (x.shape[axis],).

        Raises
        ------
        QuantdError
            When the call fails; InvalidArgumentError names the field.
        TypeError, ValueError
            For arguments that no calibration can take, such as float64 arrays; and any exception that xs raises.
        """
        from quantd_core import _native

        named = calibration.numbers(method, output_type, symmetry_of(symmetry, symmetric), percentile, non_finite)
        axis = None if axis is None else integer(axis, "axis")
        return calibrate(
            _native, self._operand, _fail, xs, states, named, axis, flag(return_state, "return_state", False),
            *self._limits(timeout, threads)
        )

    def info(self, *, timeout: Optional[float] = None) -> results.ServerInfo:
        """Version, instruction set and threads. No limits: messages and memory are as large as an int gets."""
        import quantd_core
        from quantd_core import _native

        return results.ServerInfo(
            version=quantd_core.__version__,
            target=_native.target(),
            supported_targets=tuple(_native.targets()),
            threads=self._threads,
            max_message_bytes=sys.maxsize,
            memory_budget_bytes=sys.maxsize,
            extensions=self._extensions,
        )

    def health(self, service: str = "", *, timeout: Optional[float] = None) -> str:
        """ "SERVING"; NOT_FOUND for a service that quantd does not have, as from the server."""
        if service not in ("", "quantd.v1.QuantizationService"):
            raise _fail(StatusCode.NOT_FOUND.value[0], "this server has no such service", "")
        return "SERVING"

    def close(self) -> None:
        """Nothing: the threads are shared and stay. An engine that is closed goes on working."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._threads} threads>"

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()
