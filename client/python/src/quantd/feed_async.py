"""AsyncClient's side of calibrate."""

import asyncio
from typing import Any, AsyncIterator, Union

import grpc
import grpc.aio

from .calibrate_call import Source
from .calls import Feed
from .errors import QuantdError, StatusCode, UnavailableError, from_rpc_error

# What grpc.aio says of a call that ended while a message was written to it: why it ended is lost. Most likely its server went.
CORE = "Internal error from Core"


async def run(method: Any, step: Feed) -> Union[bytes, QuantdError]:
    """The answer to a call that everything was sent to, unless it ended before; or its failure. Raises what xs raises."""
    call, rpc = step.call, method(timeout=step.timeout)
    ended = asyncio.get_running_loop().create_future()
    rpc.add_done_callback(lambda _: _note(rpc, ended))
    try:
        sent = all([await _write(rpc, message) for message in call.head()])
        if sent:
            async for x in _each(call.source, ended):
                for message in call.messages(x, step.limits):
                    sent = sent and await _write(rpc, message)
                if not sent:
                    break
        if sent and not rpc.done():
            try:
                await rpc.done_writing()
            except (grpc.RpcError, asyncio.InvalidStateError):
                pass  # it has ended; its result says why
        try:
            answer: bytes = await rpc
            return answer
        except grpc.RpcError:
            failure = from_rpc_error(ended.result() if ended.done() else failure_of(rpc))
        return lost() if failure.message == CORE else failure
    finally:
        if not rpc.done():
            rpc.cancel()


def lost() -> UnavailableError:
    return UnavailableError(StatusCode.UNAVAILABLE, CORE)


def _now(coroutine: Any) -> Any:
    """The result of what does not wait."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    coroutine.close()
    return None


def failure_of(rpc: Any) -> grpc.aio.AioRpcError:
    """Why a call that has ended did."""
    return grpc.aio.AioRpcError(
        _now(rpc.code()), _now(rpc.initial_metadata()), _now(rpc.trailing_metadata()), details=_now(rpc.details())
    )


def _note(rpc: Any, ended: "asyncio.Future[Any]") -> None:
    """Keeps why the call ended, which grpc.aio forgets when a message that was on its way fails a moment later."""
    if not ended.done() and _now(rpc.details()) != CORE:
        ended.set_result(failure_of(rpc))


async def _write(rpc: Any, message: bytes) -> bool:
    """False when the call has ended."""
    try:
        await rpc.write(message)
        return True
    except (grpc.RpcError, asyncio.InvalidStateError):
        return False
    except asyncio.CancelledError:
        if not rpc.done():  # this task was cancelled, and not the call
            raise
        return False


async def _each(source: Source, ended: "asyncio.Future[Any]") -> AsyncIterator[Any]:
    """What is calibrated on, until the call ends."""
    if not source.is_async:
        for x in source:
            yield x
            await asyncio.sleep(0)  # a call that fails is noticed, and other tasks have their turn
            if ended.done():
                return
        return
    iterator = source.xs.__aiter__()
    while True:
        task = asyncio.ensure_future(iterator.__anext__())
        try:
            await asyncio.wait({task, ended}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)
        if ended.done() and task.cancelled():
            return
        try:
            x = task.result()
        except StopAsyncIteration:
            return
        source.spent = True
        yield x
