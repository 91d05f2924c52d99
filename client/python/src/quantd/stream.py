"""Stream: many calls over one HTTP/2 stream, answered in any order; cheaper per call than separate calls.

If the stream breaks because its server goes away (UNAVAILABLE), another one is opened, and unanswered items are sent again.

The user holds a Stream, the threads hold a _Core: they end when nothing refers to the Stream any more.
"""

import functools
import inspect
import logging
import os
import queue
import threading
import weakref
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Dict, Optional, TypeVar

import grpc

from . import calls, requests, wire
from .choices import integer
from .errors import QuantdError, StatusCode, cancelled, from_rpc_error, wrong_answer, wrong_type, wrong_value
from .operations import Operations
from .results import Dequantized, DynamicQuantized, Quantized, QuantizedEmbeddings
from .retry import UNHEALTHY, Attempts, Deadline

if TYPE_CHECKING:
    from typing_extensions import Concatenate, ParamSpec

    _P = ParamSpec("_P")
    _Sync = Operations[Quantized[Dequantized], Dequantized, DynamicQuantized[Dequantized], QuantizedEmbeddings]
_R = TypeVar("_R")


def closed() -> ValueError:
    """The error of a stream's methods after its end."""
    return ValueError("the stream is closed")


def unanswered() -> QuantdError:
    """The error of open items if the server ends the stream as if it had answered them."""
    return QuantdError(StatusCode.UNKNOWN, "the stream ended without an answer to this item")


class _Answer(Future[Any]):
    """The return value of a Stream's methods."""

    def __init__(self, reader: threading.Thread):
        super().__init__()
        self._reader = reader  # the thread that settles it

    def result(self, timeout: Optional[float] = None) -> Any:
        self._check(timeout)
        return super().result(timeout)

    def exception(self, timeout: Optional[float] = None) -> Optional[BaseException]:
        self._check(timeout)
        return super().exception(timeout)

    def _check(self, timeout: Optional[float]) -> None:
        if timeout is None and threading.current_thread() is self._reader and not self.done():
            raise RuntimeError("a callback waits for another answer of its stream, which is received only when the callback has returned")


@dataclass
class _Item:
    future: _Answer
    request: requests.Request
    data: Optional[bytes] = None  # kept until it is answered: it may have to be sent again after x has changed


def _item(method: "Callable[Concatenate[_Sync, _P], _R]") -> "Callable[Concatenate[Stream, _P], Future[_R]]":
    """The method of Client as an item of a stream."""
    signature = inspect.signature(method)
    known = signature.parameters.keys() - {"self", "timeout"}

    @functools.wraps(method)
    def call(self: "Stream", *arguments: "_P.args", **options: "_P.kwargs") -> "Future[_R]":
        if not known >= options.keys():
            signature.bind(self, *arguments, **options)  # names an argument that there is not
            raise wrong_type("timeout", "timeout is given, but an item has that of its stream")
        return self._core.take(requests.make(method.__name__, *arguments, **options))

    return call


class Stream:
    """Calls in a row without waiting for each. Thread-safe.

        with client.stream() as stream:
            futures = [stream.dynamic_quantize(x) for x in tensors]
            answers = [future.result() for future in futures]

    Every method has the arguments of Client's method of that name (except timeout), and returns a
    concurrent.futures.Future of its result. An item that fails raises from its own future, and the stream continues. A
    stream that breaks fails all open futures, unless it breaks with UNAVAILABLE and may be opened again (see Client's
    retry). At most max_in_flight calls are unanswered at a time; above that a
    method waits for an answer. Items are sent as they are: an item that is larger than the server allows fails.

    A future's callbacks run on the thread that receives answers. Methods that they call do not wait: neither for answers, nor, in
    close() and cancel(), for the end. If nothing refers to an open stream, it ends after its last answer. A stream belongs to the
    process that made it: in a child of fork, its methods and open futures raise an error.
    """

    def __init__(self, client: Any, max_in_flight: int, timeout: Optional[float]):
        if integer(max_in_flight, "max_in_flight") < 1:
            raise wrong_value("max_in_flight", f"max_in_flight is {max_in_flight}, must be 1 or more")
        self._core = _Core(client, max_in_flight, timeout)
        weakref.finalize(self, self._core.leave)

    def close(self) -> None:
        """Say that no more calls will come, and wait for the open answers."""
        self._core.close()

    def cancel(self) -> None:
        """Drop the stream; open futures fail with CANCELLED."""
        self._core.cancel()

    def __enter__(self) -> "Stream":
        return self

    def __exit__(self, exception_type: Any, *_: Any) -> None:
        if exception_type is None:
            self.close()
        else:
            self.cancel()

    if TYPE_CHECKING:
        quantize = _item(_Sync.quantize)
        dequantize = _item(_Sync.dequantize)
        dynamic_quantize = _item(_Sync.dynamic_quantize)
        quantize_embeddings = _item(_Sync.quantize_embeddings)
    else:
        quantize, dequantize = _item(Operations.quantize), _item(Operations.dequantize)
        dynamic_quantize, quantize_embeddings = _item(Operations.dynamic_quantize), _item(Operations.quantize_embeddings)


_cores: "weakref.WeakSet[_Core]" = weakref.WeakSet()


def _after_fork() -> None:
    for core in list(_cores):
        core.orphan()


os.register_at_fork(after_in_child=_after_fork)


def _tell(tell: Callable[[Any], None], outcome: Any) -> None:
    """Settles a future. An exception from a callback does not end the stream; concurrent.futures has already logged most of them."""
    try:
        tell(outcome)
    except BaseException:
        logging.getLogger(__name__).exception("exception of a callback")


class _Core:
    """A Stream without its user: the data of its threads."""

    def __init__(self, client: Any, max_in_flight: int, timeout: Optional[float]):
        self._client, self._retry, self._any = client, client._transport.retry, False
        self._deadline, self._most = Deadline(timeout), max_in_flight
        self._condition = threading.Condition()  # for all of the following; notified when there is room in _pending
        self._pending: Dict[int, _Item] = {}
        self._answered: Optional[_Item] = None  # the item that the reader is about to settle
        self._next_id = 0
        self._ended: Optional[Exception] = None
        self._answers = 0
        self._dropped = threading.Event()
        self._orphaned = False
        self._outbox: "queue.SimpleQueue[Optional[bytes]]" = queue.SimpleQueue()
        self._call = self._open()
        self._reader = threading.Thread(target=self._read, name="quantd-stream", daemon=True)
        _cores.add(self)
        self._reader.start()

    def is_reader(self) -> bool:
        """Whether this thread is the one that receives answers and runs callbacks."""
        return threading.current_thread() is self._reader

    def close(self) -> None:
        if self._orphaned:
            return
        self._end(closed())
        if not self.is_reader():
            self._reader.join()

    def cancel(self) -> None:
        if self._orphaned:
            return
        with self._condition:  # the reader may end at once: its error must not come before the user's close or cancel
            self._ended = self._ended or closed()
            self._dropped.set()
            self._call.cancel()
        self.close()

    def leave(self) -> None:
        """Like close, but does not wait, and takes no lock: called during garbage collection, in any thread.

        Either _reopen notices that the stream has ended, or this function sees the outbox that _reopen has made.
        """
        self._ended = self._ended or closed()
        self._outbox.put(None)

    def orphan(self) -> None:
        """Called in a child of fork, which has neither the threads nor the call, but possibly locks that these threads held."""
        self._orphaned, self._condition = True, threading.Condition()
        self._ended = self._client._transport.of_another_process("stream")
        left, self._pending = [*self._pending.values(), self._answered], {}
        for item in left:
            if item is not None:
                _Answer.__init__(item.future, self._reader)  # with a lock that is free, and without callbacks: those belong to the parent
                item.future.set_exception(self._ended)

    def _end(self, reason: Exception) -> None:
        with self._condition:
            self._ended = self._ended or reason
            self._outbox.put(None)
            self._condition.notify_all()

    def take(self, request: requests.Request) -> _Answer:
        """Sends a request once there is room for it."""
        future = _Answer(self._reader)
        future.set_running_or_notify_cancel()
        with self._condition:
            while self._ended is None and len(self._pending) >= self._most and not self.is_reader():
                self._condition.wait()
            if self._ended is not None:
                raise self._ended
            identity, self._next_id = self._next_id, self._next_id + 1
            item = self._pending[identity] = _Item(future, request)
        try:  # without the lock, which the reader needs: this copies the tensor
            data = request.encode_item(identity)
        except BaseException:
            with self._condition:
                self._pop(identity)
            raise
        with self._condition:
            if identity in self._pending:
                item.data = data
                self._outbox.put(data)
        return future

    def _pop(self, identity: int) -> Optional[_Item]:
        item = self._pending.pop(identity, None)
        if item is not None:
            self._condition.notify()
        return item

    def _open(self) -> Any:
        return self._client._method("any_stream" if self._any else "stream")(iter(self._outbox.get, None), timeout=self._deadline.left())

    def _read(self) -> None:
        attempts = Attempts(self._retry, self._deadline)
        while True:
            known = self._answers
            failure = self._read_answers()
            if self._answers > known:  # it has worked for a while, so this is a new failure
                attempts = Attempts(self._retry, self._deadline)
            self._any = self._any or UNHEALTHY in str(failure)
            try:
                if not isinstance(failure, QuantdError) or self._dropped.wait(attempts.wait_after(failure)):
                    break
                if not self._reopen():
                    break
            except Exception:  # too late, or the client is closed
                break
        if self._dropped.is_set():
            failure = cancelled()
        self._end(failure)
        with self._condition:
            left, self._pending = self._pending, {}
        for item in left.values():
            _tell(item.future.set_exception, failure)

    def _read_answers(self) -> Exception:
        """Runs until the gRPC stream ends; returns the reason."""
        call = self._call
        try:
            for data in call:
                identity, kind, answer = wire.read_item(data)
                del data
                with self._condition:
                    self._answered = self._pop(identity)
                if self._answered is not None:
                    self._answers += 1
                    self._answer(self._answered, kind, answer)
                self._answered = answer = None
        except grpc.RpcError as error:
            return from_rpc_error(error)
        except Exception as error:  # bytes that are not a response: the item can't be identified
            call.cancel()
            return wrong_answer(error)
        return unanswered()

    def _answer(self, item: _Item, kind: Optional[str], answer: Any) -> None:
        try:
            result = calls.settle(self._client, item.request, kind, answer)
        except Exception as error:
            _tell(item.future.set_exception, error)
        else:
            _tell(item.future.set_result, result)

    def _reopen(self) -> bool:
        """Opens another gRPC stream, for unanswered and new items. False: there is nothing to do for it."""
        with self._condition:
            if self._dropped.is_set() or (self._ended is not None and not self._pending):
                return False
            self._outbox.put(None)
            self._outbox = queue.SimpleQueue()
            for item in self._pending.values():  # in the order of their calls
                if item.data is not None:
                    self._outbox.put(item.data)
            if self._ended is not None:
                self._outbox.put(None)
            self._call = self._open()
        return True
