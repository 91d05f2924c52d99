"""Client's side of calibrate: arrays are made on the caller's thread and sent on gRPC's, which takes one when the last is gone."""

import collections
import threading
from typing import Any, Deque

from .calls import Feed

_WAITING = 2  # messages that are ready while another is sent


class _Messages:
    """The messages between two threads, as an iterator for gRPC's."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._messages: Deque[bytes] = collections.deque()
        self._closed = self._hungry = False

    def __iter__(self) -> "_Messages":
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


def start(method: Any, step: Feed) -> Any:
    """The future of a call that everything was sent to, unless it ended before. Raises what the arrays' maker does."""
    call, messages = step.call, _Messages()
    future = method.future(messages, timeout=step.timeout)
    try:
        future.add_done_callback(lambda _: messages.close())
        if all(messages.put(message) for message in call.head()) and messages.gone():
            for x in call.source:
                if not all(messages.put(message) for message in call.messages(x, step.limits)):
                    break
    except BaseException:
        future.cancel()
        raise
    finally:
        messages.close()
    return future
