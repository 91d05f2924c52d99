"""Client's side of calibrate: arrays are made on the caller's thread and sent on gRPC's, which takes one when the last is gone."""

import collections
import threading
import time
from typing import Any, Deque, Optional

import grpc

from . import split
from .base import parsed
from .calibrate import Calibration
from .calibration import Calibrated, arrays
from .errors import ResourceExhaustedError, from_rpc_error
from .retry import Attempts, Deadline

_WAITING = 2  # messages that are ready while another is sent


class _Feed:
    """The messages between two threads, as an iterator for gRPC's."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._messages: Deque[bytes] = collections.deque()
        self._closed = self._hungry = False

    def __iter__(self) -> "_Feed":
        return self

    def __next__(self) -> bytes:
        with self._condition:
            self._hungry = True
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._messages or self._closed)
            if not self._messages:
                raise StopIteration
            self._hungry = False
            return self._messages.popleft()

    def put(self, message: bytes, most: int = _WAITING) -> bool:
        """Waits for room; False when nobody takes messages any more."""
        with self._condition:
            self._condition.wait_for(lambda: len(self._messages) < most or self._closed)
            if not self._closed:
                self._messages.append(message)
                self._condition.notify_all()
            return not self._closed

    def gone(self) -> bool:
        """Waits until all that was put is sent; False when that will not be."""
        with self._condition:
            self._condition.wait_for(lambda: (self._hungry and not self._messages) or self._closed)
            return not self._closed

    def close(self) -> None:
        with self._condition:
            self._closed = True
            self._condition.notify_all()


def run(client: Any, call: Calibration, deadline: Deadline) -> Calibrated:
    """The call, made again while it may be: see Source."""
    arrays(call.source.xs)  # which may refuse it
    limits, attempts, asked_again = client._server_limits(deadline), Attempts(client._transport.retry, deadline), False
    while True:
        client._transport.check_process()
        future, failure = _send(client._methods["calibrate"], call, limits, deadline.left()), None
        try:
            return parsed(call.decode, future.result())
        except grpc.RpcError as error:
            failure = from_rpc_error(error)
        except grpc.FutureCancelledError:
            failure = from_rpc_error(future)
        if call.source.spent:
            raise failure
        if isinstance(failure, ResourceExhaustedError) and not asked_again:  # perhaps the limit is lower than it was
            known, asked_again = limits, True
            limits = client._server_limits(deadline, again=True)
            if limits == known:
                raise failure
            continue
        time.sleep(attempts.wait_after(failure))


def _send(method: Any, call: Calibration, limits: split.Limits, timeout: Optional[float]) -> Any:
    """The future of a call that everything was sent to, unless it ended before."""
    feed = _Feed()
    future = method.future(feed, timeout=timeout)
    try:
        future.add_done_callback(lambda _: feed.close())
        if all(feed.put(message) for message in call.head()) and feed.gone():
            for x in call.source:
                if not all(feed.put(message) for message in call.messages(x, limits)):
                    break
    except BaseException:
        future.cancel()
        raise
    finally:
        feed.close()
    return future
