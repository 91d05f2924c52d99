"""Calls without their transport: generators that yield steps, receive their outcomes, and return the result of the call.

Client performs the steps on its thread (`Client._drive`), AsyncClient in its loop. If a step fails with a QuantdError, that is thrown
into the generator; any other exception ends both.
"""

import math
from dataclasses import dataclass
from typing import Any, Callable, Generator, Iterator, NamedTuple, Optional, TypeVar, Union

from . import split, wire
from .errors import QuantdError, ResourceExhaustedError, from_item_error, wrong_answer
from .messages import GetServerInfoRequest
from .requests import Request
from .results import Result
from .retry import UNHEALTHY, Attempts, Deadline
from .transport import Transport, server_info

_T = TypeVar("_T")
_NEVER = Deadline(None)


@dataclass  # its __init__ is quicker than that of a NamedTuple
class Send:
    """One attempt of a method; its outcome is the answer's bytes."""

    method: str
    data: bytes
    timeout: Optional[float]


class Wait(NamedTuple):
    """Time that passes."""

    seconds: float


class Together(NamedTuple):
    """Calls that are run split.IN_FLIGHT at a time."""

    calls: "Iterator[Steps[None]]"


Step = Union[Send, Wait, Together]
Steps = Generator[Step, Any, _T]


class Caller:
    """The target of calls: a client without the sending. Subclasses implement `_drive`."""

    _transport: Transport
    _timeout: Optional[float]
    _limits: Optional[split.Limits] = None
    _spare: bytes  # the last message, if it was large and was answered

    def _drive(self, steps: Steps[Any]) -> Any:
        raise NotImplementedError

    def _deadline(self, timeout: Optional[float]) -> Deadline:
        seconds = self._timeout if timeout is None else timeout
        return _NEVER if seconds is None else Deadline(seconds)


def parsed(parse: Callable[..., _T], *received: Any) -> _T:
    """parse(*received); any exception other than QuantdError is the fault of the server, which sent the data."""
    try:
        return parse(*received)
    except QuantdError:
        raise
    except Exception as error:  # of numpy, protobuf or ours: anything that bad data can cause
        raise wrong_answer(error) from None


def send(caller: Caller, method: str, data: bytes, deadline: Deadline) -> Steps[bytes]:
    """The answer of a method; repeated as long as that is allowed."""
    attempts: Optional[Attempts] = None
    while True:
        try:
            answer: bytes = yield Send(method, data, deadline.left())
            return answer
        except QuantdError as error:
            failure = error
        if UNHEALTHY in failure.message and not method.startswith("any_"):
            method = f"any_{method}"
            if caller._transport.retry:
                continue
        attempts = attempts or Attempts(caller._transport.retry, deadline)
        yield Wait(attempts.wait_after(failure))


def ask(caller: Caller, method: str, request: Any, parse: Callable[[bytes], _T], deadline: Deadline) -> Steps[_T]:
    """The parsed answer of a method."""
    return parsed(parse, (yield from send(caller, method, request.SerializeToString(), deadline)))


def run(caller: Caller, request: Request, timeout: Optional[float]) -> Steps[Result]:
    """The result of a request."""
    deadline = caller._deadline(timeout)
    failure: Optional[QuantdError] = None
    if math.prod(request.operands["x"].shape) > split.FEW_ELEMENTS:
        known = yield from limits(caller, deadline)
        try:
            result = yield from _in_pieces(caller, request, known, deadline)
        except ResourceExhaustedError as error:
            failure = error.with_traceback(None)  # its frames keep the partial result alive
        if failure is not None:
            # Another server may have answered, with lower limits.
            again = yield from _limits_after(failure, caller, deadline)
            if again == known:
                raise failure
            result = yield from _in_pieces(caller, request, again, deadline)
        if result is not None:
            return result
    message = request.encode(vars(caller).pop("_spare", None))
    try:
        answer = yield from send(caller, request.operation, message, deadline)
    except ResourceExhaustedError as error:
        failure = error
    else:
        # The page faults of new memory for the message, and for gRPC's copy of it, take longer than the call: with 16 MiB, 25 of 50 ms.
        if wire.REUSED_BYTES <= len(message):
            caller._spare = message
        return parsed(request.decode, answer, caller)
    # The limit may have become lower, or is lower than the size from which it is asked for.
    result = yield from _in_pieces(caller, request, (yield from _limits_after(failure, caller, deadline)), deadline)
    if result is None:
        raise failure
    return result


def settle(caller: Caller, request: Request, kind: Optional[str], answer: Any) -> Result:
    """The result of a stream's item; `answer` is from wire.read_item."""

    def result(found: Any) -> Result:
        if kind == "error":
            raise from_item_error(found)
        if kind != request.operation:
            raise ValueError(f"{kind or 'nothing'} answers {request.operation}")
        return request.result(found, caller)

    return parsed(result, answer)


def limits(caller: Caller, deadline: Deadline, again: bool = False) -> Steps[split.Limits]:
    """The limits of the server; asked for once."""
    if caller._limits is None or again:
        try:
            found = yield from ask(caller, "info", GetServerInfoRequest(), server_info, deadline)
            caller._limits = split.limits_from(found)
        except QuantdError as error:
            caller._limits = split.without_limits(error)
    return caller._limits


def _limits_after(failure: QuantdError, caller: Caller, deadline: Deadline) -> Steps[split.Limits]:
    """The limits of a server that had no room for a call; raises the call's failure if they are not available."""
    try:
        return (yield from limits(caller, deadline, again=True))
    except QuantdError:
        pass
    raise failure


def _in_pieces(caller: Caller, request: Request, known: split.Limits, deadline: Deadline) -> Steps[Optional[Result]]:
    """The result of a request that is better sent in pieces; None if it is not."""
    plan = split.plan(request, known, caller)
    if plan is None:
        return None
    yield Together(_piece(caller, piece, deadline) for piece in plan.pieces)
    return parsed(plan.finish)


def _piece(caller: Caller, piece: split.Piece, deadline: Deadline) -> Steps[None]:
    try:
        answer = yield from send(caller, piece.request.operation, piece.request.encode(), deadline)
    except QuantdError as error:
        raise piece.explain(error) from None
    parsed(lambda data: piece.accept(piece.request.decode(data, caller)), answer)
