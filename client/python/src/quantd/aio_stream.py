"""AsyncStream: Stream for asyncio, over grpc.aio."""

import asyncio
import contextlib
import weakref
from typing import Any, Coroutine, Dict, Optional, Set, Tuple, TypeVar

import grpc
import grpc.aio

from . import calls, requests, wire
from .errors import QuantdError, StatusCode, cancelled, from_rpc_error, wrong_answer
from .feed_async import CORE, failure_of, lost
from .items import Items
from .results import Dequantized, DynamicQuantized, Quantized, QuantizedEmbeddings
from .retry import Attempts, Deadline
from .stream import closed, unanswered

_T = TypeVar("_T")
Later = Coroutine[Any, Any, _T]


class AsyncStream(Items[
    asyncio.Task[Quantized[Later[Dequantized]]], asyncio.Task[Dequantized], asyncio.Task[DynamicQuantized[Later[Dequantized]]],
    asyncio.Task[QuantizedEmbeddings],
]):
    """Calls in a row without waiting for each.

        async with client.stream() as stream:
            answers = await asyncio.gather(*[stream.dynamic_quantize(x) for x in tensors])

    Every method has the arguments of AsyncClient's method of that name (except timeout) and returns an asyncio.Task of its result,
    which has already started. An item that fails raises from its own task, and the stream continues. A stream that breaks
    fails all open items, unless it breaks with UNAVAILABLE and may be opened again (see Client's retry; with INTERNAL
    if grpc.aio has lost the reason every time, because it was writing then). At most
    max_in_flight items are unanswered at a time; the others wait. Items are sent as they are: an item that is larger than the
    server allows fails. A stream that is not closed ends when nothing refers to it. In a child of fork it raises an error.
    """

    def __init__(self, client: Any, max_in_flight: int, timeout: Optional[float]):
        super().__init__(max_in_flight)
        self._client = client
        self._deadline = Deadline(timeout)
        self._permits = asyncio.Semaphore(max_in_flight)
        self._tasks: "Set[asyncio.Task[Any]]" = set()
        self._next_id = 0
        self._ended: Optional[Exception] = None
        self._dropped = asyncio.Event()
        self._call: Optional[_StreamCall] = None
        self._finalizer: "Optional[weakref.finalize[Any, AsyncStream]]" = None
        self._reason: Optional[QuantdError] = None  # the last failure of a gRPC stream with a known reason

    async def __aenter__(self) -> "AsyncStream":
        return self

    async def __aexit__(self, exception_type: Any, *_: Any) -> None:
        if exception_type is None:
            await self.close()
        else:
            await self.cancel()

    async def close(self) -> None:
        """Say that no more calls will come, and wait for the open answers."""
        if not self._client._transport.is_here:
            return
        while self._tasks:  # including those that are added meanwhile
            await asyncio.wait(set(self._tasks))
        self._ended = self._ended or closed()
        if self._call is not None:
            await self._call.close()

    async def cancel(self) -> None:
        """Drop the stream; open calls fail with CANCELLED."""
        if not self._client._transport.is_here:
            return
        self._ended = self._ended or closed()
        self._dropped.set()
        if self._call is not None:
            await self._call.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    def _open(self) -> "_StreamCall":
        call = _StreamCall(self._client._method("stream")(timeout=self._deadline.left()), self._client)
        if self._finalizer is not None:
            self._finalizer.detach()
        self._finalizer = weakref.finalize(self, call.leave)
        self._finalizer.atexit = False
        return call

    def _take(self, operation: str, arguments: Dict[str, Any]) -> "asyncio.Task[Any]":
        request = requests.make(operation, **arguments)
        self._client._transport.check_process("stream")
        if self._ended is not None:
            raise self._ended
        if self._call is None:
            self._call = self._open()
        task: "asyncio.Task[Any]" = asyncio.ensure_future(self._item(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _item(self, request: requests.Request) -> Any:
        async with self._permits:
            identity, self._next_id = self._next_id, self._next_id + 1
            attempts, data = Attempts(self._client._transport.retry, self._deadline), b""
            while True:
                if self._dropped.is_set():
                    raise cancelled()
                if self._ended is not None:
                    raise self._ended
                call = self._call
                if call is None or call.failure is not None:  # a stream of an earlier item
                    if call is not None and call.failure is not None and not self._client._transport.retry:
                        raise call.failure
                    call = self._call = self._open()
                data = data or request.encode_item(identity)
                try:
                    kind, answer = await call.ask(identity, data)
                    break
                except QuantdError as error:  # the stream broke
                    if error.message != CORE:
                        self._reason = error
                    try:
                        wait = attempts.wait_after(lost() if error.message == CORE else error)
                    except QuantdError:
                        reason = self._reason or error
                        self._ended = self._ended or reason
                        raise reason from None
                with contextlib.suppress(asyncio.TimeoutError):
                    await asyncio.wait_for(self._dropped.wait(), wait)
            return calls.settle(self._client, request, kind, answer)


class _StreamCall:
    """One gRPC stream of an AsyncStream."""

    def __init__(self, call: Any, client: Any):
        self.failure: Optional[Exception] = None  # why the stream ended
        self._call, self._client = call, client
        self._loop, self._writing = asyncio.get_running_loop(), asyncio.Lock()
        self._pending: "Dict[int, asyncio.Future[Tuple[Optional[str], Any]]]" = {}
        self._reader = asyncio.ensure_future(self._read())

    async def close(self) -> None:
        """Ends the stream once no answer is awaited any more."""
        if self._writing.locked():  # by an item that was cancelled: this does not end if the peer does not read
            self._call.cancel()
        else:
            with contextlib.suppress(grpc.RpcError, asyncio.InvalidStateError):  # it has already ended; the reader knows why
                await self._call.done_writing()
        await self._reader

    async def cancel(self) -> None:
        self._call.cancel()
        await self._reader

    def leave(self) -> None:
        """Drops the call of a stream to which nothing refers. Called during garbage collection, in any thread."""
        if self._client._transport.is_here:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._call.cancel)

    async def ask(self, identity: int, data: bytes) -> Tuple[Optional[str], Any]:
        """The answer to an item, as from wire.read_item. Raises `failure` if the stream breaks."""
        answer = self._pending[identity] = asyncio.get_running_loop().create_future()
        try:
            await self._writing.acquire()
            # In a task of its own, because grpc.aio ends the whole call if one write is cancelled.
            writing = asyncio.ensure_future(self._write(data))
            writing.add_done_callback(self._written)
            await asyncio.shield(writing)
            return await answer
        finally:
            self._pending.pop(identity, None)
            if answer.done() and not answer.cancelled():
                answer.exception()  # retrieved, however this task ends

    def _written(self, writing: "asyncio.Future[None]") -> None:
        self._writing.release()
        if not writing.cancelled():
            writing.exception()  # retrieved, however its task ends

    async def _write(self, data: bytes) -> None:
        if self.failure is not None:
            raise self.failure
        try:
            await self._call.write(data)
        except (grpc.RpcError, asyncio.InvalidStateError):
            await asyncio.shield(self._reader)  # it fails every open answer with the reason
        except asyncio.CancelledError:
            if not self._call.done():  # otherwise the call was cancelled, and not this task
                raise
            await asyncio.shield(self._reader)

    async def _read(self) -> None:
        failure: Exception = unanswered()
        try:
            while True:
                data = await self._call.read()
                if data is grpc.aio.EOF:
                    break
                identity, kind, found = wire.read_item(data)
                answer = self._pending.get(identity)
                if answer is not None and not answer.done():
                    answer.set_result((kind, found))
            if await self._call.code() is not StatusCode.OK:
                failure = from_rpc_error(failure_of(self._call))
        except grpc.RpcError as error:
            failure = from_rpc_error(error)
        except asyncio.CancelledError:
            failure = cancelled()
        except Exception as error:  # bytes that are not a response: the item can't be identified
            failure = wrong_answer(error)
            self._call.cancel()
        self.failure = failure
        for answer in list(self._pending.values()):
            if not answer.done():
                answer.set_exception(failure)
