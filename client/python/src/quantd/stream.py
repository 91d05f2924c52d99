"""Stream: many calls over one HTTP/2 stream, answered in any order; cheaper a call than calls of their own."""

import queue
import threading
from concurrent.futures import Future
from typing import Dict, Optional, Tuple

import grpc

from . import messages, requests, results
from .errors import QuantdError, from_item_error, from_rpc_error
from .shared import SharedTensor

_PARSERS = {
    "quantize": results.quantized,
    "dequantize": results.dequantized,
    "dynamic_quantize": results.dynamic_quantized,
}


class Stream:
    """Calls in a row without waiting for each. Thread safe.

        with client.stream() as stream:
            futures = [stream.dynamic_quantize(x) for x in tensors]
            answers = [future.result() for future in futures]

    Every method takes what the method of the same name of Client takes, and returns a concurrent.futures.Future of what
    that returns. An item that fails raises from its own future and the stream goes on; a stream that breaks fails all
    of the open futures. At most max_in_flight calls are unanswered at a time: past that a method waits for an answer.
    """

    def __init__(self, method, max_in_flight: int, timeout: Optional[float]):
        if max_in_flight < 1:
            raise ValueError(f"max_in_flight is {max_in_flight}, must be 1 or more")
        self._permits = threading.Semaphore(max_in_flight)
        self._lock = threading.Lock()
        self._pending: Dict[int, Tuple[Future, Optional[SharedTensor]]] = {}
        self._next_id = 0
        self._ended: Optional[Exception] = None
        self._outbox: "queue.Queue" = queue.Queue()
        self._call = method(iter(self._outbox.get, None), timeout=timeout)
        self._reader = threading.Thread(target=self._read, name="quantd-stream", daemon=True)
        self._reader.start()

    def quantize(self, *arguments, **options) -> "Future[results.Quantized]":
        return self._submit("quantize", requests.quantize(*arguments, **options), options.get("out"))

    def dequantize(self, *arguments, **options) -> "Future[results.Dequantized]":
        return self._submit("dequantize", requests.dequantize(*arguments, **options), options.get("out"))

    def dynamic_quantize(self, *arguments, **options) -> "Future[results.DynamicQuantized]":
        return self._submit("dynamic_quantize", requests.dynamic_quantize(*arguments, **options), options.get("out"))

    def close(self) -> None:
        """Says that no more calls come, and waits for the answers still open."""
        self._end(ValueError("the stream is closed"))
        self._outbox.put(None)
        self._reader.join()

    def cancel(self) -> None:
        """Drops the stream; open futures fail with CANCELLED."""
        self._call.cancel()
        self.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, exception_type, *_) -> None:
        if exception_type is None:
            self.close()
        else:
            self.cancel()

    def _end(self, reason: Exception) -> None:
        with self._lock:
            self._ended = self._ended or reason

    def _submit(self, kind: str, request, out: Optional[SharedTensor]) -> Future:
        self._permits.acquire()
        future: Future = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            if self._ended is not None:
                self._permits.release()
                raise self._ended
            item = messages.StreamRequest(id=self._next_id)
            getattr(item, kind).CopyFrom(request)
            self._pending[self._next_id] = future, out
            self._next_id += 1
            self._outbox.put(item)
        return future

    def _read(self) -> None:
        failure: Exception = QuantdError(grpc.StatusCode.UNKNOWN, "the stream ended without an answer to this item")
        try:
            for answer in self._call:
                with self._lock:
                    pending = self._pending.pop(answer.id, None)
                if pending is None:
                    continue
                self._permits.release()
                self._settle(*pending, answer)
        except grpc.RpcError as error:
            failure = from_rpc_error(error)
        self._end(failure)
        self._outbox.put(None)
        with self._lock:
            left, self._pending = self._pending, {}
        for future, _ in left.values():
            self._permits.release()
            future.set_exception(failure)

    @staticmethod
    def _settle(future: Future, out: Optional[SharedTensor], answer) -> None:
        kind = answer.WhichOneof("response")
        try:
            if kind == "error":
                raise from_item_error(answer.error)
            result = _PARSERS[kind](getattr(answer, kind), out)
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(result)
