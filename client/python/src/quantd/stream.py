"""Stream: many calls over one HTTP/2 stream, answered in any order; cheaper a call than calls of their own."""

import queue
import threading
from concurrent.futures import Future
from typing import Any, Dict, Optional, Tuple

import grpc

from . import requests, results, wire
from .errors import QuantdError, from_item_error, from_rpc_error, wrong_answer


def settle(request: requests.Request, kind: Optional[str], answer: Any, engine: Any) -> "results.Result":
    """The result of one item's answer, as wire.read_item gives it; raises what the item failed with."""
    if kind == "error":
        raise from_item_error(answer)
    try:
        if kind != request.operation:
            raise ValueError(f"{kind or 'nothing'} answers {request.operation}")
        return request.result(answer, engine)
    except Exception as error:
        raise wrong_answer(error) from None


class Stream:
    """Calls in a row without waiting for each. Thread safe.

        with client.stream() as stream:
            futures = [stream.dynamic_quantize(x) for x in tensors]
            answers = [future.result() for future in futures]

    Every method takes what the method of the same name of Client takes (but timeout), and returns a
    concurrent.futures.Future of what that returns. An item that fails raises from its own future and the stream goes on; a
    stream that breaks fails all of the open futures. At most max_in_flight calls are unanswered at a time: past that a
    method waits for an answer. Items are sent as they are: one that is larger than the server allows fails.
    """

    def __init__(self, method, max_in_flight: int, timeout: Optional[float], engine: Any = None):
        if max_in_flight < 1:
            raise ValueError(f"max_in_flight is {max_in_flight}, must be 1 or more")
        self._engine = engine
        self._permits = threading.Semaphore(max_in_flight)
        self._lock = threading.Lock()
        self._pending: Dict[int, Tuple[Future, requests.Request]] = {}
        self._next_id = 0
        self._ended: Optional[Exception] = None
        self._outbox: "queue.Queue" = queue.Queue()
        self._call = method(iter(self._outbox.get, None), timeout=timeout)
        self._reader = threading.Thread(target=self._read, name="quantd-stream", daemon=True)
        self._reader.start()

    def quantize(self, *arguments, **options) -> "Future[results.Quantized]":
        """Client.quantize as an item of this stream."""
        return self._submit(requests.quantize(*arguments, **options))

    def dequantize(self, *arguments, **options) -> "Future[results.Dequantized]":
        """Client.dequantize as an item of this stream."""
        return self._submit(requests.dequantize(*arguments, **options))

    def dynamic_quantize(self, *arguments, **options) -> "Future[results.DynamicQuantized]":
        """Client.dynamic_quantize as an item of this stream."""
        return self._submit(requests.dynamic_quantize(*arguments, **options))

    def quantize_embeddings(self, *arguments, **options) -> "Future[results.QuantizedEmbeddings]":
        """Client.quantize_embeddings as an item of this stream."""
        return self._submit(requests.quantize_embeddings(*arguments, **options))

    def close(self) -> None:
        """Say that no more calls come, and wait for the answers still open."""
        self._end(ValueError("the stream is closed"))
        self._outbox.put(None)
        self._reader.join()

    def cancel(self) -> None:
        """Drop the stream; open futures fail with CANCELLED."""
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

    def _submit(self, request: requests.Request) -> Future:
        self._permits.acquire()
        future: Future = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            if self._ended is not None:
                self._permits.release()
                raise self._ended
            identity, self._next_id = self._next_id, self._next_id + 1
            self._pending[identity] = future, request
        try:  # outside of the lock, which the reader needs: this copies the tensor
            data = request.encode_item(identity)
        except BaseException:
            with self._lock:
                known = self._pending.pop(identity, None)
            if known:
                self._permits.release()
            raise
        self._outbox.put(data)
        return future

    def _read(self) -> None:
        failure: Exception = QuantdError(grpc.StatusCode.UNKNOWN, "the stream ended without an answer to this item")
        try:
            for data in self._call:
                identity, kind, answer = wire.read_item(data)
                del data
                with self._lock:
                    pending = self._pending.pop(identity, None)
                if pending is None:
                    continue
                self._permits.release()
                future, request = pending
                try:
                    future.set_result(settle(request, kind, answer, self._engine))
                except Exception as error:
                    future.set_exception(error)
        except grpc.RpcError as error:
            failure = from_rpc_error(error)
        except Exception as error:  # bytes that are no answer: whose they are can't be known
            failure = wrong_answer(error)
            self._call.cancel()
        self._end(failure)
        self._outbox.put(None)
        with self._lock:
            left, self._pending = self._pending, {}
        for future, _ in left.values():
            self._permits.release()
            future.set_exception(failure)
