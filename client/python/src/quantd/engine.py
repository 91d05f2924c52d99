"""Engine: the operations of Client, computed in this process by quantd_core's native module.

This file is in two packages: quantd, whose local() makes one, and quantd_core, which needs neither gRPC nor protobuf.
"""

import os
import sys
from typing import Any, Dict, Optional, Sequence, Tuple

import numpy as np

from . import calibration, embeddings, errors, results
from .choices import NON_FINITES, SYMMETRIES, ZERO_POINT_ORDERS, choice, type_number
from .engine_calibrate import calibrate
from .engine_stream import EngineStream
from .status import StatusCode
from .types import DataType, DataTypeLike, as_array, data_type

_VARIABLE = "QUANTD_THREADS"
_CODES = {code.value[0]: code for code in StatusCode}


def _fail(code: int, message: str, field: str) -> errors.QuantdError:
    """What Client raises for the server's answer of the same code, text and field."""
    status = _CODES[code]
    violations = [errors.FieldViolation(field, message)] if field else []
    return errors._make(status, message, violations, reason=status.name, metadata={})


def _thread_count(threads: Any, name: str, most: int) -> int:
    try:
        count = int(threads) if isinstance(threads, str) else threads.__index__()
    except (AttributeError, ValueError):
        raise ValueError(f"{name} is {threads!r}, must be a number from 1 to {most}") from None
    if not 1 <= count <= most:
        raise ValueError(f"{name} is {count}, must be from 1 to {most}")
    return count


class Engine:
    """quantd in this process: Client's methods, without a server. Thread safe.

        with Engine(threads=4) as engine:
            answer = engine.dynamic_quantize(x, output_type="int8", axis=0)

    Parameters
    ----------
    threads : int, optional
        Threads that a call may compute on, 1 to 1024, the caller's among them; without it QUANTD_THREADS, or else the
        CPUs that this process may use. All engines share them. In a child of os.fork, whose parent had computed, a call
        computes on the caller's thread alone.
    timeout : float, optional
        Seconds that a call may take when it names no timeout of its own.

    Arrays are those of numpy and ml_dtypes, in native or swapped byte order, of any strides; what has `__dlpack__` (torch,
    JAX) is read in place. Large calls release the GIL, and end with KeyboardInterrupt when Ctrl-C is pressed. Nobody may
    change an argument while a call computes.

    Calls raise what Client raises: InvalidArgumentError with the server's text and fields, DeadlineExceededError,
    TypeError and ValueError. An `out` that can't take y is a ValueError.
    """

    _extensions: Tuple[str, ...] = ("stream", "embeddings", "calibrate")

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
        self._timeout = timeout
        _native.set_dtypes([(int(kind), kind.dtype) for kind in DataType])
        self._native = _native.Engine(self._operand, self._place, _fail)

    @staticmethod
    def _operand(value: Any, name: str, default: int) -> np.ndarray:
        """An array of a type that quantd has, in native byte order, of what is none."""
        if hasattr(type(value), "__dlpack__") and not isinstance(value, (np.ndarray, np.generic)):
            from quantd_core import _native

            if hasattr(value, "detach"):  # of torch: the numbers are what is wanted, not their gradient
                value = value.detach()
            array = _native.from_dlpack(value, name)
            if array is not None:
                return array
        array = as_array(value, name, DataType(default))
        return array.astype(data_type(array.dtype).dtype, copy=False)

    @staticmethod
    def _place(out: Any) -> Tuple[np.ndarray, str]:
        """Packed bytes and their name, of an `out` that is no array."""
        raise TypeError(
            f"out is {type(out).__name__}, must be a numpy array (of a torch tensor on the CPU, .numpy() is a view)"
        )

    def _limits(self, timeout: Optional[float], threads: Optional[int]) -> Tuple[Optional[float], int]:
        count = self._threads if threads is None else _thread_count(threads, "threads", self._most_threads)
        return self._timeout if timeout is None else timeout, count

    def quantize(
        self,
        x: Any,
        scale: Any = None,
        zero_point: Any = None,
        *,
        output_type: Optional[DataTypeLike] = None,
        axis: Optional[int] = None,
        block_size: int = 0,
        block_shape: Optional[Sequence[int]] = None,
        saturate: bool = True,
        precision: Optional[DataTypeLike] = None,
        zero_point_order: Optional[str] = None,
        report_error: bool = False,
        out: Any = None,
        parameters: Any = None,
        timeout: Optional[float] = None,
        threads: Optional[int] = None,
    ) -> results.Quantized:
        """Quantize with a given scale, as ONNX QuantizeLinear: y = clamp(rint(x / scale) + zero_point).

        Arguments and result are those of Client.quantize, and beside them:

        Parameters
        ----------
        out : numpy.ndarray, optional
            Memory for y, of y's shape and type, none of which is an argument's; the result's y is this array.
        threads : int, optional
            Threads for this call, when not the engine's.
        """
        if parameters is not None:
            return self._stored("quantize", parameters, locals())
        if scale is None:
            raise TypeError("scale is missing: only parameters can have it in its place")
        y, error, kept_scale, kept_zero_point, input_type = self._native.quantize(
            x,
            scale,
            zero_point,
            type_number(output_type),
            axis,
            block_size,
            block_shape,
            saturate,
            type_number(precision),
            choice(zero_point_order, ZERO_POINT_ORDERS, "zero_point_order") == 2,
            report_error,
            out,
            *self._limits(timeout, threads),
        )
        return self._result(
            results.Quantized, y, kept_scale, kept_zero_point, None, error, axis, block_size, block_shape, input_type
        )

    def dequantize(
        self,
        x: Any,
        scale: Any = None,
        zero_point: Any = None,
        *,
        output_type: Optional[DataTypeLike] = None,
        axis: Optional[int] = None,
        block_size: int = 0,
        block_shape: Optional[Sequence[int]] = None,
        tensor_scale: Any = None,
        out: Any = None,
        parameters: Any = None,
        timeout: Optional[float] = None,
        threads: Optional[int] = None,
    ) -> results.Dequantized:
        """Dequantize, as ONNX DequantizeLinear: y = (x - zero_point) * scale.

        Arguments and result are those of Client.dequantize; `out` and `threads` as in quantize.
        """
        if hasattr(x, "dequantize_arguments"):  # a result, which brings them
            known = dict(scale=scale, zero_point=zero_point, axis=axis, block_size=block_size or None, block_shape=block_shape,
                         tensor_scale=tensor_scale, parameters=parameters)
            twice = [name for name, value in known.items() if value is not None]
            if twice:
                raise TypeError(f"x is a {type(x).__name__}, which has its own {' and '.join(twice)}; to use others, pass x.y")
            return self.dequantize(x.y, **x.dequantize_arguments(output_type), out=out, timeout=timeout, threads=threads)
        if parameters is not None:
            return self._stored("dequantize", parameters, locals())
        if scale is None:
            raise TypeError("scale is missing: only a result of quantize or dynamic_quantize is dequantized without one, or with parameters")
        y = self._native.dequantize(
            x,
            scale,
            zero_point,
            type_number(output_type),
            axis,
            block_size,
            block_shape,
            tensor_scale,
            out,
            *self._limits(timeout, threads),
        )
        return results.Dequantized(y)

    def dynamic_quantize(
        self,
        x: Any,
        *,
        output_type: Optional[DataTypeLike] = None,
        axis: Optional[int] = None,
        block_size: int = 0,
        block_shape: Optional[Sequence[int]] = None,
        saturate: bool = True,
        scale_type: Optional[DataTypeLike] = None,
        symmetry: Optional[str] = None,
        non_finite: Optional[str] = None,
        report_error: bool = False,
        out: Any = None,
        timeout: Optional[float] = None,
        threads: Optional[int] = None,
    ) -> results.DynamicQuantized:
        """Find scale and zero point in x, then quantize; DynamicQuantizeLinear for uint8.

        Arguments and result are those of Client.dynamic_quantize; `out` and `threads` as in quantize.
        """
        y, scale, zero_point, tensor_scale, error, input_type = self._native.dynamic_quantize(
            x,
            type_number(output_type),
            axis,
            block_size,
            block_shape,
            saturate,
            type_number(scale_type),
            choice(symmetry, SYMMETRIES, "symmetry"),
            choice(non_finite, NON_FINITES, "non_finite") == 2,
            report_error,
            out,
            *self._limits(timeout, threads),
        )
        return self._result(
            results.DynamicQuantized, y, scale, zero_point, tensor_scale, error, axis, block_size, block_shape, input_type
        )

    def quantize_embeddings(
        self,
        x: Any,
        *,
        preset: Optional[str] = None,
        recipe: Optional[str] = None,
        ranges: Any = None,
        output_type: Optional[DataTypeLike] = None,
        dimensions: int = 0,
        normalize: bool = False,
        bit_order: Optional[str] = None,
        bit_threshold: Optional[str] = None,
        signed_bits: Optional[str] = None,
        non_finite: Optional[str] = None,
        report_error: bool = False,
        out: Any = None,
        parameters: Any = None,
        timeout: Optional[float] = None,
        threads: Optional[int] = None,
    ) -> results.QuantizedEmbeddings:
        """Make the codes that vector databases have for embeddings, as their libraries make them.

        Arguments and result are those of Client.quantize_embeddings; `out` and `threads` as in quantize.
        """
        if parameters is not None:
            return self._stored("quantize_embeddings", parameters, locals())
        named = embeddings.numbers(preset, non_finite, recipe=recipe, output_type=output_type, bit_order=bit_order,
                                   bit_threshold=bit_threshold, signed_bits=signed_bits)
        y, error = self._native.quantize_embeddings(
            x,
            ranges,
            named["recipe"],
            named["output_type"],
            dimensions,
            normalize,
            named["bit_order"],
            named["bit_threshold"],
            named["signed_bits"],
            named["non_finite"] == 2,
            report_error,
            out,
            *self._limits(timeout, threads),
        )
        return results.QuantizedEmbeddings(y, None if error is None else results.QuantizationError(*error))

    def calibrate(
        self,
        xs: Any = (),
        *,
        method: Optional[str] = "mse",
        output_type: Optional[DataTypeLike] = None,
        axis: Optional[int] = None,
        symmetry: Optional[str] = None,
        percentile: Optional[float] = None,
        non_finite: Optional[str] = None,
        return_state: bool = False,
        states: Any = (),
        timeout: Optional[float] = None,
        threads: Optional[int] = None,
    ) -> calibration.Calibrated:
        """Find scale, zero point and range of many arrays.

        Arguments and result are those of Client.calibrate; `threads` as in quantize.
        """
        from quantd_core import _native

        named = calibration.numbers(method, output_type, symmetry, percentile, non_finite)
        return calibrate(
            _native, self._operand, _fail, xs, states, named, axis, return_state, *self._limits(timeout, threads)
        )

    def _stored(self, operation: str, parameters: Any, arguments: Dict[str, Any]):
        """The result of a call that names stored parameters. `arguments`: all of it, self among them."""
        raise TypeError("parameters can't be given: quantd_core keeps no sets; quantd.local() does")

    def _result(self, kind, y, scale, zero_point, tensor_scale, error, axis, block_size, block_shape, input_type):
        # Not by the constructor: a frozen dataclass takes 0.2 us a field there, which is as long as 1,000 elements take.
        result = object.__new__(kind)
        result.__dict__.update(
            y=y,
            error=None if error is None else results.QuantizationError(*error),
            scale=scale,
            zero_point=zero_point,
            tensor_scale=tensor_scale,
            axis=axis,
            block_size=block_size,
            block_shape=None if block_shape is None else tuple(block_shape),
            input_type=DataType(input_type),
            engine=self,
        )
        return result

    def stream(self, *, max_in_flight: int = 16, timeout: Optional[float] = None) -> EngineStream:
        """Client.stream's counterpart. A call computes when it is made, on all threads: its future is done."""
        return EngineStream(self, max_in_flight, timeout)

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

    def __enter__(self) -> "Engine":
        return self

    def __exit__(self, *_) -> None:
        self.close()
