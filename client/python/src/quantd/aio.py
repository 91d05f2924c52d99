"""AsyncClient: Client for asyncio, over grpc.aio. Requests, answers and pieces are Client's; only who sends differs."""

import asyncio
import functools
from typing import Any, Callable, Dict, Optional, Tuple

import grpc
import grpc.aio

from . import calibrate_async, parameters, requests, results, split, wire
from .base import Base, parsed
from .calibrate import Calibration
from .calibration import Calibrated
from .errors import QuantdError, ResourceExhaustedError, StatusCode, UnavailableError, from_rpc_error, wrong_answer
from .retry import Attempts, Deadline
from .stream import settle

# What grpc.aio says when a stream ends while it is written to: why it ended is lost. Most likely its server went.
_CORE = "Internal error from Core"
_LOST = UnavailableError(StatusCode.UNAVAILABLE, _CORE)


class AsyncClient(Base):
    """A connection to a quantd server for asyncio.

        async with quantd.AsyncClient() as client:
            answers = await asyncio.gather(*(client.dynamic_quantize(x) for x in tensors))

    Has Client's arguments and methods; those that call the server return awaitables. It belongs to the event loop in which it
    is first used. A task that is cancelled cancels its call.

    Parameters
    ----------
    address, timeout, credentials, tls_ca, tls_cert, tls_key, auth_token_file, allow_insecure_token, retry, options, shared_memory_dir
        As in Client.
    """

    @functools.wraps(Base.__init__)
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._channel: Optional[grpc.aio.Channel] = None
        self._health_channel: Optional[grpc.aio.Channel] = None
        self._methods: Dict[str, Any] = {}
        self._closed = False
        self._limits: Optional[split.Limits] = None

    async def close(self) -> None:
        """Close the connection; calls in flight are cancelled."""
        self._closed = True
        for channel in (self._channel, self._health_channel):
            if channel is not None:
                await channel.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_) -> None:
        await self.close()

    def _method(self, name: str):
        self._transport.check_process()
        if self._closed:
            raise ValueError("this client is closed")
        if self._channel is None:  # here and not before: a channel belongs to the loop that runs when it is made
            self._channel = self._transport.channel(grpc.aio)
            self._health_channel = self._transport.channel(grpc.aio, check_health=False)  # as in Client
            self._methods = self._transport.methods(self._channel, self._health_channel)
        return self._methods[name]

    async def _ask(self, method: str, request: Any, parse: Callable[[bytes], Any], timeout: Optional[float]):
        return parsed(parse, await self._send(method, request.SerializeToString(), self._deadline(timeout)))

    async def _send(self, name: str, data: bytes, deadline: Deadline) -> bytes:
        method, attempts = self._method(name), None
        while True:
            try:
                return await method(data, timeout=deadline.left())
            except grpc.RpcError as error:
                failure = from_rpc_error(error)
            attempts = attempts or Attempts(self._transport.retry, deadline)
            await asyncio.sleep(attempts.wait_after(failure))

    async def _run(self, request: requests.Request, timeout: Optional[float]) -> results.Result:
        deadline = self._deadline(timeout)
        if split.may_be_large(request):
            result = await self._in_pieces(request, await self._server_limits(deadline), deadline)
            if result is not None:
                return result
        data = request.encode()
        try:
            answer = await self._send(request.operation, data, deadline)
        except ResourceExhaustedError:
            # Perhaps the limit is lower than it was, or than what is worth asking for it.
            result = await self._in_pieces(request, await self._server_limits(deadline, again=True), deadline)
            if result is None:
                raise
            return result
        except QuantdError as error:
            if not parameters.may_help(request, error):
                raise
            answer = await self._give(request, data, deadline)
        return parsed(lambda answer: request.decode(answer, self), answer)

    async def _give(self, request: requests.Request, data: bytes, deadline: Deadline) -> bytes:
        """As Client's."""
        failure: Exception
        for puts in parameters.PUTS:
            for _ in range(puts):
                await self._send("put_parameters", parameters.put_data(request), deadline)
            try:
                return await self._send(request.operation, data, deadline)
            except QuantdError as error:
                if not parameters.may_help(request, error):
                    raise
                failure = error
        raise failure

    async def _in_pieces(self, request: requests.Request, limits: split.Limits, deadline: Deadline) -> Optional[results.Result]:
        """As Client's."""
        if not request.reference:
            steps = split.plan(request, limits, self)
            return None if steps is None else await self._drive(steps, deadline)
        if split.surely_fits(request, limits):
            return None
        stored = request.parameters or await self.get_parameters(request.reference, timeout=deadline.left())
        steps = split.plan(parameters.completed(request, stored), limits, self)
        return None if steps is None else parameters.own(await self._drive(steps, deadline), request, stored.reference)

    async def _calibrate(self, call: Calibration, timeout: Optional[float]) -> Calibrated:
        return await calibrate_async.run(self, call, self._deadline(timeout))

    async def _server_limits(self, deadline: Deadline, again: bool = False) -> split.Limits:
        if self._limits is None or again:
            try:
                self._limits = split.limits_from(await self.info(timeout=deadline.left()))
            except QuantdError as error:
                self._limits = split.without_limits(error)
        return self._limits

    async def _drive(self, steps: split.Steps, deadline: Deadline) -> results.Result:
        """Runs the pieces of a call, some at a time."""

        def advance():  # on a thread: it may look at the whole tensor
            try:
                return next(steps), None
            except StopIteration as done:
                return None, done

        loop = asyncio.get_running_loop()
        while True:
            batch, done = await loop.run_in_executor(None, advance)
            if done is not None:
                return done.value
            pending = []
            try:
                for piece in batch:
                    if len(pending) >= split.IN_FLIGHT:
                        await pending.pop(0)
                    pending.append(asyncio.ensure_future(self._piece(piece, deadline)))
                while pending:
                    await pending.pop(0)
            finally:
                for task in pending:
                    task.cancel()
                await asyncio.gather(*pending, return_exceptions=True)

    async def _piece(self, piece: split.Piece, deadline: Deadline) -> None:
        try:
            data = await self._send(piece.request.operation, piece.request.encode(), deadline)
        except QuantdError as error:
            raise piece.explain(error) from None
        parsed(lambda answer: piece.accept(piece.request.decode(answer, self)), data)

    def stream(self, *, max_in_flight: int = 16, timeout: Optional[float] = None) -> "AsyncStream":
        """Open a stream of many calls; see AsyncStream.

        Parameters
        ----------
        max_in_flight : int, optional
            Calls that may be unanswered at a time.
        timeout : float, optional
            Seconds for the whole stream; None: no such limit.

        Returns
        -------
        AsyncStream
            To be used in an `async with` statement.
        """
        return AsyncStream(lambda left: self._method("stream")(timeout=left), max_in_flight, timeout, self, self._transport.retry)


class AsyncStream:
    """Calls in a row without waiting for each.

        async with client.stream() as stream:
            answers = await asyncio.gather(*[stream.dynamic_quantize(x) for x in tensors])

    Every method takes what the method of the same name of AsyncClient takes (but timeout) and returns an asyncio.Task of what
    that returns, already under way. An item that fails raises from its own task and the stream goes on; a stream that breaks
    fails all of the open ones, unless it breaks with UNAVAILABLE and may be opened again (see Client's retry; with INTERNAL
    where grpc.aio has lost the reason every time, because it was writing then). At most
    max_in_flight items are unanswered at a time: the others wait. Items are sent as they are: one that is larger than the
    server allows fails.
    """

    def __init__(self, open_call, max_in_flight: int, timeout: Optional[float], engine: Any, retry: bool):
        if max_in_flight < 1:
            raise ValueError(f"max_in_flight is {max_in_flight}, must be 1 or more")
        self._open_call, self._engine, self._retry = open_call, engine, retry
        self._deadline = Deadline(timeout)
        self._permits = asyncio.Semaphore(max_in_flight)
        self._tasks: set = set()
        self._next_id = 0
        self._ended: Optional[Exception] = None
        self._call: Optional[_StreamCall] = None
        self._reason: Optional[QuantdError] = None  # the last failure of a gRPC stream whose reason is known

    def quantize(self, *arguments, **options) -> "asyncio.Task[results.Quantized]":
        """AsyncClient.quantize as an item of this stream."""
        return self._submit(requests.quantize(*arguments, **options))

    def dequantize(self, *arguments, **options) -> "asyncio.Task[results.Dequantized]":
        """AsyncClient.dequantize as an item of this stream."""
        return self._submit(requests.dequantize(*arguments, **options))

    def dynamic_quantize(self, *arguments, **options) -> "asyncio.Task[results.DynamicQuantized]":
        """AsyncClient.dynamic_quantize as an item of this stream."""
        return self._submit(requests.dynamic_quantize(*arguments, **options))

    def quantize_embeddings(self, *arguments, **options) -> "asyncio.Task[results.QuantizedEmbeddings]":
        """AsyncClient.quantize_embeddings as an item of this stream."""
        return self._submit(requests.quantize_embeddings(*arguments, **options))

    async def __aenter__(self) -> "AsyncStream":
        return self

    async def __aexit__(self, exception_type, *_) -> None:
        if exception_type is None:
            await self.close()
        else:
            await self.cancel()

    async def close(self) -> None:
        """Say that no more calls come, and wait for the answers still open."""
        if self._tasks:
            await asyncio.wait(set(self._tasks))
        self._ended = self._ended or ValueError("the stream is closed")
        if self._call is not None:
            await self._call.close()

    async def cancel(self) -> None:
        """Drop the stream; open calls fail with CANCELLED."""
        self._ended = self._ended or ValueError("the stream is closed")
        if self._call is not None:
            await self._call.cancel()
        if self._tasks:
            await asyncio.wait(set(self._tasks))

    def _submit(self, request: requests.Request) -> "asyncio.Task":
        if self._ended is not None:
            raise self._ended
        if self._call is None:
            self._call = _StreamCall(self._open_call(self._deadline.left()), self._engine)
        task = asyncio.ensure_future(self._item(request))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _item(self, request: requests.Request):
        async with self._permits:
            identity, self._next_id = self._next_id, self._next_id + 1
            attempts, data = Attempts(self._retry, self._deadline), None
            while True:
                if self._ended is not None:
                    raise self._ended
                if self._call.failure is not None:  # of another item's time
                    if not self._retry:
                        raise self._call.failure
                    self._call = _StreamCall(self._open_call(self._deadline.left()), self._engine)
                call = self._call
                try:
                    data = data or request.encode_item(identity)
                    return await call.ask(identity, request, data)
                except QuantdError as error:
                    if error is not call.failure:  # this item's own
                        if not parameters.may_help(request, error):
                            raise
                        answer = await self._engine._give(request, requests.data_of_item(data, request), self._deadline)
                        return parsed(lambda answer: request.decode(answer, self._engine), answer)
                    if error.message != _CORE:
                        self._reason = error
                    try:
                        wait = attempts.wait_after(_LOST if error.message == _CORE else error)
                    except QuantdError:
                        reason = self._reason or error
                        self._ended = self._ended or reason
                        raise reason from None
                await asyncio.sleep(wait)


class _StreamCall:
    """One gRPC stream of an AsyncStream."""

    def __init__(self, call, engine: Any):
        self.failure: Optional[Exception] = None  # why it ended
        self._call, self._engine = call, engine
        self._writing = asyncio.Lock()
        self._pending: Dict[int, Tuple[asyncio.Future, requests.Request]] = {}
        self._reader = asyncio.ensure_future(self._read())

    async def close(self) -> None:
        try:
            await self._call.done_writing()
        except (grpc.RpcError, asyncio.InvalidStateError):
            pass  # it ended already; the reader knows why
        await self._reader

    async def cancel(self) -> None:
        self._call.cancel()
        await self._reader

    async def ask(self, identity: int, request: requests.Request, data: bytes):
        """The answer to an item. Raises `failure`, and nothing like it, when the stream breaks."""
        answer: asyncio.Future = asyncio.get_running_loop().create_future()
        self._pending[identity] = answer, request
        try:
            async with self._writing:
                if self.failure is not None:
                    raise self.failure
                await self._write(data)
            return await answer
        finally:
            self._pending.pop(identity, None)
            if answer.done() and not answer.cancelled():
                answer.exception()  # retrieved, whatever this task ends with

    async def _write(self, data: bytes) -> None:
        try:
            await self._call.write(data)
        except (grpc.RpcError, asyncio.InvalidStateError):
            await asyncio.shield(self._reader)  # which gives every open answer the reason
        except asyncio.CancelledError:
            if not self._call.done():  # else the call was cancelled, and not this task
                raise
            await asyncio.shield(self._reader)

    async def _read(self) -> None:
        failure: Exception = QuantdError(StatusCode.UNKNOWN, "the stream ended without an answer to this item")
        try:
            while True:
                data = await self._call.read()
                if data is grpc.aio.EOF:
                    break
                self._settle(*wire.read_item(data))
            if await self._call.code() is not StatusCode.OK:
                failure = await _failure(self._call)
        except grpc.RpcError as error:
            failure = from_rpc_error(error)
        except asyncio.CancelledError:
            failure = QuantdError(StatusCode.CANCELLED, "Cancelled by the client")
        except Exception as error:  # bytes that are no answer: whose they are can't be known
            failure = wrong_answer(error)
            self._call.cancel()
        self.failure = failure
        for answer, _ in list(self._pending.values()):
            if not answer.done():
                answer.set_exception(failure)

    def _settle(self, identity: int, kind: Optional[str], answer: Any) -> None:
        future, request = self._pending.pop(identity, (None, None))
        if future is None or future.done():
            return
        try:
            future.set_result(settle(request, kind, answer, self._engine))
        except Exception as error:
            future.set_exception(error)


async def _failure(call) -> QuantdError:
    trailers = await call.trailing_metadata()
    return from_rpc_error(
        grpc.aio.AioRpcError(await call.code(), await call.initial_metadata(), trailers, details=await call.details())
    )
