"""AsyncClient: Client for asyncio, over grpc.aio. The calls are Client's; only the sending differs."""

import asyncio
import traceback
from typing import Any, Awaitable, Coroutine, Dict, Iterator, List, TypeVar

import grpc
import grpc.aio

from . import calls, split
from .base import Base
from .errors import QuantdError, cancelled, from_rpc_error
from .results import Dequantized, DynamicQuantized, Quantized, QuantizedEmbeddings, ServerInfo

_T = TypeVar("_T")
Later = Coroutine[Any, Any, _T]


class AsyncClient(
    Base[
        Later[Quantized[Later[Dequantized]]], Later[Dequantized], Later[DynamicQuantized[Later[Dequantized]]],
        Later[QuantizedEmbeddings], Later[ServerInfo], Later[str],
    ]
):
    """A connection to a quantd server for asyncio.

        async with quantd.AsyncClient() as client:
            answers = await asyncio.gather(*(client.dynamic_quantize(x) for x in tensors))

    Has Client's arguments and methods, except stream; those that call the server return awaitables. It belongs to the event loop in which it
    is first used. Cancelling a task cancels its call.

    Parameters
    ----------
    address, timeout, credentials, tls_ca, tls_cert, tls_key, auth_token_file, allow_insecure_token, retry, options, shared_memory_dir
        As in Client.
    """

    def _connect(self) -> None:
        self._channel: Any = None
        self._any_channel: Any = None
        self._methods: Dict[str, Any] = {}
        self._closed = False

    async def close(self) -> None:
        """Close the connection; calls in flight are cancelled. Does nothing in a child of fork: the parent owns the connection."""
        self._closed = True
        for channel in (self._channel, self._any_channel):
            if channel is not None and self._transport.is_here:
                await channel.close()

    async def __aenter__(self) -> "AsyncClient":
        return self

    async def __aexit__(self, *_: Any) -> None:
        await self.close()

    def _method(self, name: str) -> Any:
        self._transport.check_process()
        if self._closed:
            raise ValueError("this client is closed")
        if self._channel is None:  # here and not earlier: a channel belongs to the loop that runs when it is made
            self._channel = self._transport.channel(grpc.aio)
            self._any_channel = self._transport.channel(grpc.aio, check_health=False)  # as in Client
            self._methods = self._transport.methods(self._channel, self._any_channel)
        return self._methods[name]

    async def _drive(self, steps: calls.Steps[Any]) -> Any:
        """The result of a call."""
        outcome: Any = None
        try:
            while True:
                try:
                    step = steps.throw(outcome) if isinstance(outcome, QuantdError) else steps.send(outcome)
                except StopIteration as done:
                    return done.value
                outcome = None
                try:
                    outcome = await self._begin(step)
                except grpc.RpcError as error:
                    outcome = from_rpc_error(error)
                except QuantdError as error:
                    outcome = error
                except asyncio.CancelledError:
                    cancelling = getattr(asyncio.current_task(), "cancelling", None)  # since Python 3.11
                    if not self._closed or (cancelling is not None and cancelling()):
                        raise
                    outcome = cancelled()  # close() has cancelled the call, and nobody the task
        except QuantdError as error:
            traceback.clear_frames(error.__traceback__)  # as in Client
            raise
        finally:  # cancelled: a stored exception keeps this frame alive, and all that the steps hold
            steps.close()
            outcome = None

    def _begin(self, step: calls.Step) -> Awaitable[Any]:
        """The outcome of a step. Not a coroutine: each one between a task and its call takes time whenever the task wakes up."""
        if isinstance(step, calls.Send):
            return self._method(step.method)(step.data, timeout=step.timeout)
        if isinstance(step, calls.Wait):
            return asyncio.sleep(step.seconds)
        return self._together(step.calls)

    async def _together(self, each: Iterator[calls.Steps[None]]) -> None:
        pending: "List[asyncio.Task[None]]" = []
        try:
            for steps in each:
                if len(pending) >= split.IN_FLIGHT:
                    await pending.pop(0)
                pending.append(asyncio.ensure_future(self._drive(steps)))
            while pending:
                await pending.pop(0)
        finally:
            for task in pending:
                task.cancel()
            for outcome in await asyncio.gather(*pending, return_exceptions=True):
                if isinstance(outcome, BaseException):
                    outcome.__traceback__ = None
