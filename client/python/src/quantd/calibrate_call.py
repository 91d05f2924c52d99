"""calibrate over the wire: its signature, its messages and its answer. feed.py and feed_async.py send the messages."""

from typing import Any, Generic, Iterator, List, Optional, TypeVar

from . import calibration, messages, split, wire
from .choices import NonFinite, Symmetry, flag, integer
from .requests import operand
from .shared import SharedTensor
from .types import CodeTypeLike, DataType

ACalibrated = TypeVar("ACalibrated")  # the return type of a client's calls: a Calibrated, or an awaitable of it

_FIELDS = messages.CalibrateRequest.DESCRIPTOR.fields_by_name
_X, _STATE = _FIELDS["x"].number, _FIELDS["state"].number


class Source:
    """The data of a calibration. `spent`: something was taken from an iterator, which can't be iterated over again."""

    def __init__(self, xs: Any):
        self.xs: Any = xs
        self.is_array: bool = calibration.is_array(xs)
        self.is_async: bool = not self.is_array and hasattr(xs, "__aiter__")
        self.replayable: bool = self.is_array or isinstance(xs, (list, tuple))
        self.spent: bool = False

    def __iter__(self) -> Iterator[Any]:
        for x in calibration.arrays(self.xs):
            self.spent = not self.replayable
            yield x


class Calibration:
    """One call: the messages before the data, those of each array, and the result from the answer."""

    def __init__(self, source: Source, states: Any, axis: Optional[int], return_state: bool, **named: Any):
        self.source: Source = source
        self._states = calibration.state_bytes(states)
        self._axis = None if axis is None else integer(axis, "axis")
        numbers = calibration.numbers(**named)
        self._method = calibration.name_of(numbers["method"])
        self._output_type = DataType(numbers["output_type"] or DataType.UINT8)
        self._return_state = flag(return_state, "return_state", False)
        options = messages.CalibrationOptions(return_state=self._return_state, **numbers)
        if self._axis is not None:
            options.axis = self._axis
        self._first = messages.CalibrateRequest(options=options).SerializeToString()

    def head(self) -> List[bytes]:
        """The messages that come before all data."""
        return [self._first, *(wire.field(_STATE, state) for state in self._states)]

    def messages(self, x: Any, limits: split.Limits) -> Iterator[bytes]:
        """The messages of an array: of about 1 MiB each, cut anywhere except along the axis."""
        x = operand(x, "x", DataType.FLOAT)
        if isinstance(x, SharedTensor):
            yield wire.field(_X, x._message().SerializeToString())
            return
        for part in split.values(x, self._axis, limits):
            yield wire.join(wire.tensor(_X, part))

    def decode(self, data: bytes) -> calibration.Calibrated:
        """The result from a received answer; raises ValueError or protobuf's DecodeError if it is not an answer to this call."""
        answer = message, _ = wire.read(messages.CalibrateResponse, data)
        scale, zero_point, found = (wire.array(answer, name) for name in ("scale", "zero_point", "range"))
        if scale is None or found is None:
            raise ValueError(f"{'scale' if scale is None else 'range'} is missing")
        if scale.ndim != (self._axis is not None) or found.shape != (2, *scale.shape):
            raise ValueError(f"scale has shape {list(scale.shape)}, range {list(found.shape)}")
        if (zero_point is not None) != self._output_type.is_integer:
            raise ValueError("zero_point is missing" if zero_point is None else "there is a zero_point")
        if zero_point is not None and (zero_point.shape, zero_point.dtype) != (scale.shape, self._output_type.dtype):
            raise ValueError(f"zero_point is {zero_point.dtype} of shape {list(zero_point.shape)}")
        return calibration.Calibrated(
            scale=scale,
            zero_point=zero_point,
            range=found,
            elements=message.elements,
            non_finite_elements=message.non_finite_elements,
            state=message.state if self._return_state else None,
            method=self._method,
            output_type=self._output_type,
            axis=self._axis,
        )


class Calibrates(Generic[ACalibrated]):
    """The calibrate method of Client and AsyncClient. Subclasses implement the sending in `_calibrate`."""

    def _calibrate(self, call: Calibration, timeout: Optional[float]) -> Any:
        raise NotImplementedError

    def calibrate(
        self,
        xs: calibration.Arrays = (),
        *,
        method: Optional[calibration.Method] = "mse",
        output_type: Optional[CodeTypeLike] = None,
        axis: Optional[int] = None,
        symmetry: Optional[Symmetry] = None,
        percentile: Optional[float] = None,
        non_finite: Optional[NonFinite] = None,
        return_state: bool = False,
        states: calibration.States = (),
        timeout: Optional[float] = None,
    ) -> ACalibrated:
        """Find scale, zero point and range of many arrays.

        The result is a function of all values together: their order, their division into arrays, and the workers that
        counted them change no bit. Arrays are sent while others are made, so an endless iterator takes no memory. Large arrays
        are sent in pieces.

        Parameters
        ----------
        xs : array_like, or iterable of array_like
            float32, float16, bfloat16 or int32 of any shape that has the axis. AsyncClient also accepts an asynchronous iterable. An
            iterator is iterated over once: if its call fails after something was taken from it, the call is not made again. A call
            with an array, a list or a tuple is.
        method : {"mse", "min_max", "percentile", "entropy"}, optional
            Which range is chosen: the one with the smallest mean squared error (integers only); all values; all but the outermost
            few; the one that loses the least information (integers only).
        output_type : DataTypeLike, optional
            The type that will be quantized to; uint8 by default.
        axis : int, optional
            The dimension with one scale per index, where all arrays have the same length; by default there is one scale.
        symmetry : {"asymmetric", "symmetric"}, optional
            As in dynamic_quantize.
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

        Returns
        -------
        Calibrated
            The result, with a scale of shape () or (x.shape[axis],). AsyncClient returns an awaitable of it.

        Raises
        ------
        QuantdError
            When the call fails; InvalidArgumentError names the field.
        TypeError, ValueError
            For arguments that cannot be sent, such as float64 arrays; and any exception that xs raises.
        """
        call = Calibration(
            Source(xs),
            states,
            axis,
            return_state,
            method=method,
            output_type=output_type,
            symmetry=symmetry,
            percentile=percentile,
            non_finite=non_finite,
        )
        return self._calibrate(call, timeout)
