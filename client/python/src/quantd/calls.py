"""Calls without their transport: generators that yield what to do, receive its outcome, and return the result of the call.

Client does on its thread what they ask for (`Client._drive`), AsyncClient in its loop. A QuantdError is thrown into a generator where what
it asked for has failed; any other exception ends both.
"""

from typing import Any, Callable, Generator, Iterator, NamedTuple, Optional, TypeVar, Union

from . import parameters, split
from .calibrate_call import Calibration
from .calibration import Calibrated
from .errors import QuantdError, ResourceExhaustedError, from_item_error, wrong_answer
from .messages import GetServerInfoRequest
from .requests import Request, data_of_item
from .results import Result
from .retry import Attempts, Deadline
from .transport import Transport, server_info

_T = TypeVar("_T")


class Send(NamedTuple):
    """One attempt of a method; its outcome is the answer's bytes."""

    method: str
    data: bytes
    timeout: Optional[float]


class Feed(NamedTuple):
    """One attempt of a calibrate; its outcome is the answer's bytes."""

    call: Calibration
    limits: split.Limits
    timeout: Optional[float]


class Wait(NamedTuple):
    """Time that passes."""

    seconds: float


class Together(NamedTuple):
    """Calls that are run split.IN_FLIGHT at a time."""

    calls: "Iterator[Steps[None]]"


class Think(NamedTuple):
    """Nothing; but what comes next may look at a whole tensor, which is not for the thread of a loop."""


Step = Union[Send, Feed, Wait, Together, Think]
Steps = Generator[Step, Any, _T]


class Caller:
    """Where calls go: a client, less who sends. `_drive` is a subclass's."""

    _transport: Transport
    _timeout: Optional[float]
    _limits: Optional[split.Limits] = None

    def _drive(self, steps: Steps[Any]) -> Any:
        raise NotImplementedError

    def _deadline(self, timeout: Optional[float]) -> Deadline:
        return Deadline(self._timeout if timeout is None else timeout)


def parsed(parse: Callable[[bytes], _T], data: bytes) -> _T:
    """parse(data); whatever else it raises than QuantdError is the server's fault, which sent the data."""
    try:
        return parse(data)
    except QuantdError:
        raise
    except Exception as error:  # of numpy, protobuf or ours: whatever a server can make wrong
        raise wrong_answer(error) from None


def send(caller: Caller, method: str, data: bytes, deadline: Deadline) -> Steps[bytes]:
    """The answer of a method, asked again while it may be."""
    attempts: Optional[Attempts] = None
    while True:
        try:
            answer: bytes = yield Send(method, data, deadline.left())
            return answer
        except QuantdError as error:
            failure = error
        attempts = attempts or Attempts(caller._transport.retry, deadline)
        yield Wait(attempts.wait_after(failure))


def ask(caller: Caller, method: str, request: Any, parse: Callable[[bytes], _T], deadline: Deadline) -> Steps[_T]:
    """The parsed answer of a method."""
    return parsed(parse, (yield from send(caller, method, request.SerializeToString(), deadline)))


def run(caller: Caller, request: Request, timeout: Optional[float]) -> Steps[Result]:
    """The result of a request."""
    deadline = caller._deadline(timeout)
    failure: Optional[QuantdError] = None
    if split.may_be_large(request):
        known = yield from limits(caller, deadline)
        try:
            result = yield from _in_pieces(caller, request, known, deadline)
        except ResourceExhaustedError as error:
            failure = error.with_traceback(None)  # whose frames keep what there is of the result
        if failure is not None:
            # Perhaps another server is there by now, which takes less in a piece.
            again = yield from _limits_after(failure, caller, deadline)
            if again == known:
                raise failure
            result = yield from _in_pieces(caller, request, again, deadline)
        if result is not None:
            return result
    data = request.encode()
    try:
        answer = yield from send(caller, request.operation, data, deadline)
    except QuantdError as error:
        failure = error
    else:
        return parsed(lambda data: request.decode(data, caller), answer)
    if parameters.may_help(request, failure):
        return (yield from give(caller, request, data, deadline))
    if not isinstance(failure, ResourceExhaustedError):
        raise failure
    # Perhaps the limit is lower than it was, or than what is worth asking for it.
    result = yield from _in_pieces(caller, request, (yield from _limits_after(failure, caller, deadline)), deadline)
    if result is None:
        raise failure
    return result


def give(caller: Caller, request: Request, data: bytes, deadline: Deadline) -> Steps[Result]:
    """The result of a request whose parameters the server does not have: they are put there first."""
    failure: Optional[QuantdError] = None
    for puts in parameters.PUTS:
        for _ in range(puts):
            yield from send(caller, "put_parameters", parameters.put_data(request), deadline)
        try:
            answer = yield from send(caller, request.operation, data, deadline)
        except QuantdError as error:
            if not parameters.may_help(request, error):
                raise
            failure = error
        else:
            return parsed(lambda data: request.decode(data, caller), answer)
    assert failure is not None
    raise failure


def settle(caller: Caller, request: Request, data: Optional[bytes], kind: Optional[str], answer: Any, deadline: Deadline) -> Steps[Result]:
    """The result of a stream's item, which was sent as `data`; its answer is as wire.read_item gives it."""

    def result(found: Any) -> Result:
        if kind == "error":
            raise from_item_error(found)
        if kind != request.operation:
            raise ValueError(f"{kind or 'nothing'} answers {request.operation}")
        return request.result(found, caller)

    try:
        return parsed(result, answer)
    except QuantdError as error:
        if not parameters.may_help(request, error):
            raise
    assert data is not None
    return (yield from give(caller, request, data_of_item(data, request), deadline))


def limits(caller: Caller, deadline: Deadline, again: bool = False) -> Steps[split.Limits]:
    """The limits of the server, which is asked once."""
    if caller._limits is None or again:
        try:
            found = yield from ask(caller, "info", GetServerInfoRequest(), server_info, deadline)
            caller._limits = split.limits_from(found)
        except QuantdError as error:
            caller._limits = split.without_limits(error)
    return caller._limits


def _limits_after(failure: QuantdError, caller: Caller, deadline: Deadline) -> Steps[split.Limits]:
    """The limits of a server that had no room for a call; the call's failure where they cannot be had."""
    try:
        return (yield from limits(caller, deadline, again=True))
    except QuantdError:
        pass
    raise failure


def _in_pieces(caller: Caller, request: Request, known: split.Limits, deadline: Deadline) -> Steps[Optional[Result]]:
    """The result of a request that is better sent in pieces; None for one that is not."""
    if not request.reference:
        batches = split.plan(request, known, caller)
        return None if batches is None else (yield from _run(caller, batches, deadline))
    if split.surely_fits(request, known):
        return None
    stored = request.parameters
    if stored is None:
        stored = yield from ask(caller, "get_parameters", *parameters.get(request.reference), deadline)
    batches = split.plan(parameters.completed(request, stored), known, caller)
    return None if batches is None else parameters.own((yield from _run(caller, batches, deadline)), request, stored.reference)


def _run(caller: Caller, batches: split.Batches, deadline: Deadline) -> Steps[Result]:
    while True:
        yield Think()
        try:
            batch = next(batches)
        except StopIteration as done:
            result: Result = done.value
            return result
        yield Together(_piece(caller, piece, deadline) for piece in batch)


def _piece(caller: Caller, piece: split.Piece, deadline: Deadline) -> Steps[None]:
    try:
        answer = yield from send(caller, piece.request.operation, piece.request.encode(), deadline)
    except QuantdError as error:
        raise piece.explain(error) from None
    parsed(lambda data: piece.accept(piece.request.decode(data, caller)), answer)


def calibrate(caller: Caller, call: Calibration, timeout: Optional[float]) -> Steps[Calibrated]:
    """The result of a calibrate, made again while it may be: see Source."""
    deadline = caller._deadline(timeout)
    known = yield from limits(caller, deadline)
    attempts, asked_again = Attempts(caller._transport.retry, deadline), False
    while True:
        try:
            answer = yield Feed(call, known, deadline.left())
            break
        except QuantdError as error:
            failure = error
        if call.source.spent:
            raise failure
        if isinstance(failure, ResourceExhaustedError) and not asked_again:  # perhaps the limit is lower than it was
            before, asked_again = known, True
            known = yield from _limits_after(failure, caller, deadline)
            if known == before:
                raise failure
            continue
        yield Wait(attempts.wait_after(failure))
    return parsed(call.decode, answer)
