"""Retries: which calls are made again, when, and how often. No call changes anything in a server, so all may be.

gRPC's own retries follow a service config too, but know nothing of the RetryInfo that quantd sends with UNAVAILABLE. So the
channel gets the part about load balancing, and the part about retries is followed here.
"""

import random
import time
from typing import Any, Dict, Optional

from . import choices
from .errors import DeadlineExceededError, QuantdError, StatusCode

# What a Client does unless it is told retry=False; options=[("grpc.service_config", ...)] puts another in its place.
SERVICE_CONFIG: Dict[str, Any] = {
    "loadBalancingConfig": [{"round_robin": {}}],
    "healthCheckConfig": {"serviceName": ""},
    "methodConfig": [
        {
            "name": [{"service": "quantd.v1.QuantizationService"}, {"service": "quantd.v1.ParametersService"}],
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
_LONGEST_WAIT = 30.0  # a server that wants more than this is as good as gone: better an error now


def _seconds(text: Any) -> float:
    return float(str(text).rstrip("s"))


_FIRST_BACKOFF, _LONGEST_BACKOFF = (_seconds(_POLICY[name]) for name in ("initialBackoff", "maxBackoff"))


class Deadline:
    """The time until which a call, its retries and its pieces must be done; seconds=None: no such time."""

    def __init__(self, seconds: Optional[float]):
        seconds = choices.seconds(seconds)
        self._end = None if seconds is None else time.monotonic() + seconds

    def left(self) -> Optional[float]:
        """Seconds that are left, or None. Raises DeadlineExceededError when there are none."""
        if self._end is None:
            return None
        left = self._end - time.monotonic()
        if left <= 0:
            raise DeadlineExceededError(StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded")
        return left


class Attempts:
    """Counts the attempts of one call."""

    def __init__(self, enabled: bool, deadline: Deadline):
        self._left = _POLICY["maxAttempts"] - 1 if enabled else 0
        self._backoff = _FIRST_BACKOFF
        self._deadline = deadline

    def wait_after(self, error: QuantdError) -> float:
        """Seconds to wait before the next attempt. Raises `error` when there shall be none.

        The server's word, in RetryInfo or grpc-retry-pushback-ms, is kept; without it waits are random, so that clients do
        not come back together, and grow.
        """
        if self._left < 1 or error.code.name not in _POLICY["retryableStatusCodes"] or error.no_retry:
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
