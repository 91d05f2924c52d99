"""Retries: which calls are repeated, when, and how often. Repeating a call does no harm, so all may be repeated.

A call of which the server has surely processed nothing (nobody listens, or the server refused it) is repeated until its timeout. A call
whose connection was lost on the way, or that has no timeout, is tried five times: it may be the call itself that ends the server.

gRPC's own retries follow a service config, too, but ignore the RetryInfo that quantd sends with UNAVAILABLE. So the
channel gets the part about load balancing, and this module follows the part about retries.
"""

import random
import time
from typing import Any, Dict, Optional

from . import choices
from .errors import DeadlineExceededError, QuantdError, StatusCode

# The default of a Client, unless retry=False; options=[("grpc.service_config", ...)] replaces it.
SERVICE_CONFIG: Dict[str, Any] = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "healthCheckConfig": {"serviceName": ""},
    "methodConfig": [
        {
            "name": [{"service": "quantd.v1.QuantizationService"}],
            "retryPolicy": {
                "maxAttempts": 5,
                "initialBackoff": "0.05s",
                "maxBackoff": "1s",
                "backoffMultiplier": 2,
                "retryableStatusCodes": ["UNAVAILABLE"],
            },
        }
    ],
}
_POLICY = SERVICE_CONFIG["methodConfig"][0]["retryPolicy"]
_LONGEST_WAIT = 30.0  # a server that asks for more time is practically gone: better an error now


def _seconds(text: Any) -> float:
    return float(str(text).rstrip("s"))


_FIRST_BACKOFF, _LONGEST_BACKOFF = (_seconds(_POLICY[name]) for name in ("initialBackoff", "maxBackoff"))


class Deadline:
    """The deadline of a call with its retries and pieces; seconds=None: no deadline."""

    def __init__(self, seconds: Optional[float]):
        seconds = choices.seconds(seconds)
        self._end = None if seconds is None else time.monotonic() + seconds

    @property
    def ends(self) -> bool:
        """Whether there is one."""
        return self._end is not None

    def left(self) -> Optional[float]:
        """Seconds that are left, or None. Raises DeadlineExceededError if no time is left."""
        if self._end is None:
            return None
        left = self._end - time.monotonic()
        if left <= 0:
            raise DeadlineExceededError(StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
        return left


def untouched(error: QuantdError) -> bool:
    """Whether the server has surely processed nothing of a call that failed with UNAVAILABLE: it said so, or there was no connection."""
    return error.reason is not None or any(text in error.message for text in ("Failed to connect to remote host", UNHEALTHY))


UNHEALTHY = "backend unhealthy"  # gRPC: no address serves, according to health


class Attempts:
    """Counts the attempts of one call."""

    def __init__(self, enabled: bool, deadline: Deadline):
        self._enabled, self._left = enabled, _POLICY["maxAttempts"] - 1
        self._backoff = _FIRST_BACKOFF
        self._deadline = deadline

    def wait_after(self, error: QuantdError) -> float:
        """Seconds to wait before the next attempt. Raises `error` if there must be none.

        Follows the server's RetryInfo or grpc-retry-pushback-ms. Without them waits are random, so that clients do
        not come back together, and grow.
        """
        if not self._enabled or error.code.name not in _POLICY["retryableStatusCodes"] or error.no_retry:
            raise error
        if not self._deadline.ends or not untouched(error):
            if self._left < 1:
                raise error
            self._left -= 1
        wait = error.retry_after if error.retry_after is not None else random.uniform(0, self._backoff)
        self._backoff = min(self._backoff * _POLICY["backoffMultiplier"], _LONGEST_BACKOFF)
        if wait > _LONGEST_WAIT:
            raise error
        try:
            left = self._deadline.left()
        except DeadlineExceededError:
            raise error from None
        if left is not None and wait >= left:
            raise error
        return wait
