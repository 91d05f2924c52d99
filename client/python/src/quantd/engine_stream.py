"""EngineStream: Stream's methods over an Engine, so that a program which streams runs without a server."""

import time
from concurrent.futures import Future
from typing import Any, Dict, Optional

from .choices import seconds
from .errors import ArgumentError, QuantdError
from .items import Items
from .results import Dequantized, DynamicQuantized, Quantized, QuantizedEmbeddings


class EngineStream(Items[
    Future[Quantized[Dequantized]], Future[Dequantized], Future[DynamicQuantized[Dequantized]], Future[QuantizedEmbeddings]
]):
    """Calls in a row, each computed when it is made: the future that a method returns is done.

    Arguments that Client would not send raise from the method; what a server would refuse raises from the future, and the
    stream goes on. Past its timeout every future fails with DeadlineExceededError.
    """

    def __init__(self, engine: Any, max_in_flight: int, timeout: Optional[float]):
        super().__init__(max_in_flight)
        self._engine = engine
        timeout = seconds(timeout)
        self._deadline = None if timeout is None else time.monotonic() + timeout
        self._closed = False

    def close(self) -> None:
        """Takes no more calls."""
        self._closed = True

    def cancel(self) -> None:
        """The same: no call is open."""
        self.close()

    def __enter__(self) -> "EngineStream":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _take(self, operation: str, arguments: Dict[str, Any]) -> "Future[Any]":
        if self._closed:
            raise ValueError("the stream is closed")
        timeout = None if self._deadline is None else max(self._deadline - time.monotonic(), 0.0)
        future: "Future[Any]" = Future()
        future.set_running_or_notify_cancel()
        try:
            result = getattr(self._engine, operation)(**arguments, timeout=timeout)
        except ArgumentError:
            raise
        except QuantdError as error:
            future.set_exception(error)
        else:
            future.set_result(result)
        return future
