"""Stream: many calls over one HTTP/2 stream, answered in any order; cheaper a call than calls of their own.

When the stream breaks because its server goes (UNAVAILABLE), another one is opened, and what is unanswered is sent again.
"""

import queue
import threading
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any, Dict, Optional

import grpc

from . import calls, parameters, requests, results, wire
from .errors import QuantdError, StatusCode, cancelled, from_item_error, from_rpc_error, wrong_answer
from .items import Items
from .results import Dequantized, DynamicQuantized, Quantized, QuantizedEmbeddings
from .retry import Attempts, Deadline


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


@dataclass
class _Item:
    future: "Future[Any]"
    request: requests.Request
    data: Optional[bytes] = None  # kept until it is answered: it may have to be sent again, and x may have changed by then


class Stream(Items[
    Future[Quantized[Dequantized]], Future[Dequantized], Future[DynamicQuantized[Dequantized]], Future[QuantizedEmbeddings]
]):
    """Calls in a row without waiting for each. Thread safe.

        with client.stream() as stream:
            futures = [stream.dynamic_quantize(x) for x in tensors]
            answers = [future.result() for future in futures]

    Every method takes what the method of the same name of Client takes (but timeout), and returns a
    concurrent.futures.Future of what that returns. An item that fails raises from its own future and the stream goes on; a
    stream that breaks fails all of the open futures, unless it breaks with UNAVAILABLE and may be opened again (see Client's
    retry). At most max_in_flight calls are unanswered at a time: past that a
    method waits for an answer. Items are sent as they are: one that is larger than the server allows fails.
    """

    def __init__(self, client: Any, max_in_flight: int, timeout: Optional[float]):
        super().__init__(max_in_flight)
        self._client, self._method, self._retry = client, client._method("stream"), client._transport.retry
        self._deadline = Deadline(timeout)
        self._permits = threading.Semaphore(max_in_flight)
        self._lock = threading.Lock()  # of all that follows
        self._pending: Dict[int, _Item] = {}
        self._next_id = 0
        self._ended: Optional[Exception] = None
        self._answers = 0
        self._dropped = threading.Event()
        self._outbox: "queue.Queue[Optional[bytes]]" = queue.Queue()
        self._call = self._open()
        self._reader = threading.Thread(target=self._read, name="quantd-stream", daemon=True)
        self._reader.start()

    def close(self) -> None:
        """Say that no more calls come, and wait for the answers still open."""
        self._end(ValueError("the stream is closed"))
        self._reader.join()

    def cancel(self) -> None:
        """Drop the stream; open futures fail with CANCELLED."""
        with self._lock:  # the reader may end at once: nothing that it says comes before the user's word
            self._ended = self._ended or ValueError("the stream is closed")
            self._dropped.set()
            self._call.cancel()
        self.close()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, exception_type: Any, *_: Any) -> None:
        if exception_type is None:
            self.close()
        else:
            self.cancel()

    def _end(self, reason: Exception) -> None:
        with self._lock:
            self._ended = self._ended or reason
            self._outbox.put(None)

    def _take(self, operation: str, arguments: Dict[str, Any]) -> "Future[Any]":
        request = requests.make(operation, **arguments)
        self._permits.acquire()
        future: "Future[Any]" = Future()
        future.set_running_or_notify_cancel()
        with self._lock:
            if self._ended is not None:
                self._permits.release()
                raise self._ended
            identity, self._next_id = self._next_id, self._next_id + 1
            item = self._pending[identity] = _Item(future, request)
        try:  # outside of the lock, which the reader needs: this copies the tensor
            data = request.encode_item(identity)
        except BaseException:
            with self._lock:
                known = self._pending.pop(identity, None)
            if known:
                self._permits.release()
            raise
        with self._lock:
            if identity in self._pending:
                item.data = data
                self._outbox.put(data)
        return future

    def _open(self) -> Any:
        return self._method(iter(self._outbox.get, None), timeout=self._deadline.left())

    def _read(self) -> None:
        attempts = Attempts(self._retry, self._deadline)
        while True:
            known = self._answers
            failure = self._read_answers()
            if self._answers > known:  # it went on for a while: this is another failure than the last one
                attempts = Attempts(self._retry, self._deadline)
            try:
                if not isinstance(failure, QuantdError) or self._dropped.wait(attempts.wait_after(failure)):
                    break
                if not self._reopen():
                    break
            except QuantdError:
                break
        if self._dropped.is_set():
            failure = cancelled()
        self._end(failure)
        with self._lock:
            left, self._pending = self._pending, {}
        for item in left.values():
            self._permits.release()
            item.future.set_exception(failure)

    def _read_answers(self) -> Exception:
        """Until the gRPC stream ends; why it did."""
        call = self._call
        try:
            for data in call:
                identity, kind, answer = wire.read_item(data)
                del data
                with self._lock:
                    item = self._pending.pop(identity, None)
                if item is None:
                    continue
                self._answers += 1
                self._permits.release()
                try:
                    item.future.set_result(self._settle(item, kind, answer))
                except Exception as error:
                    item.future.set_exception(error)
        except grpc.RpcError as error:
            return from_rpc_error(error)
        except Exception as error:  # bytes that are not a response: its call cannot be known
            call.cancel()
            return wrong_answer(error)
        return QuantdError(StatusCode.UNKNOWN, "the stream ended without an answer to this item")

    def _settle(self, item: _Item, kind: Optional[str], answer: Any) -> "results.Result":
        try:
            return settle(item.request, kind, answer, self._client)
        except QuantdError as error:
            if not parameters.may_help(item.request, error):
                raise
        assert item.data is not None
        result: results.Result = self._client._drive(
            calls.give(self._client, item.request, requests.data_of_item(item.data, item.request), self._deadline))
        return result

    def _reopen(self) -> bool:
        """Another gRPC stream, for what is unanswered and what comes. False: there is nothing to do for it."""
        with self._lock:
            if self._dropped.is_set() or (self._ended is not None and not self._pending):
                return False
            self._outbox.put(None)
            self._outbox = queue.Queue()
            for item in self._pending.values():  # in the order in which they came
                if item.data is not None:
                    self._outbox.put(item.data)
            if self._ended is not None:
                self._outbox.put(None)
            self._call = self._open()
        return True
