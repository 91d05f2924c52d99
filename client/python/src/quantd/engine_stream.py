"""EngineStream: Stream's methods over an Engine, so that a program which streams runs without a server."""

import time
from concurrent.futures import Future
from typing import Any, Optional

from .errors import QuantdError


class EngineStream:
    """Calls in a row, each computed when it is made: the future that a method returns is done.

    Arguments that Client would not send raise from the method; what a server would refuse raises from the future, and the
    stream goes on. Past its timeout every future fails with DeadlineExceededError.
    """

    def __init__(self, engine: Any, max_in_flight: int, timeout: Optional[float]):
        if max_in_flight < 1:
            raise ValueError(f"max_in_flight is {max_in_flight}, must be 1 or more")
        self._engine = engine
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._closed = False

    def quantize(self, *arguments, **options) -> Future:
        return self._submit(self._engine.quantize, arguments, options)

    def dequantize(self, *arguments, **options) -> Future:
        return self._submit(self._engine.dequantize, arguments, options)

    def dynamic_quantize(self, *arguments, **options) -> Future:
        return self._submit(self._engine.dynamic_quantize, arguments, options)

    def quantize_embeddings(self, *arguments, **options) -> Future:
        return self._submit(self._engine.quantize_embeddings, arguments, options)

    def close(self) -> None:
        """Takes no more calls."""
        self._closed = True

    def cancel(self) -> None:
        """The same: no call is open."""
        self.close()

    def __enter__(self) -> "EngineStream":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _submit(self, call, arguments, options) -> Future:
        if self._closed:
            raise ValueError("the stream is closed")
        if self._deadline is not None:
            options = {**options, "timeout": max(self._deadline - time.monotonic(), 0.0)}
        future: Future = Future()
        future.set_running_or_notify_cancel()
        try:
            result = call(*arguments, **options)
        except QuantdError as error:
            future.set_exception(error)
        else:
            future.set_result(result)
        return future
