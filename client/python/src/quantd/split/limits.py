"""The limits of a server: the size of a message, and the size of the pieces of a tensor."""

from typing import NamedTuple, Optional

from .. import results
from ..errors import QuantdError, StatusCode

# Measured in comparison with one message (tests/bench/run.sh client): for 64 MiB, pieces of 1 MiB, eight in flight, take 0.6 to 0.7 of
# the time, because one is sent while another is computed and received, and all use the same memory again; for 16 MiB they take as
# long. Separate calls are as fast as one stream, and their errors and retries are those of calls.
PIECE_BYTES = 1 << 20
LARGE_BYTES = 12 << 20
IN_FLIGHT = 8


class Limits(NamedTuple):
    """The most bytes of a message, and of a request with its answer; None: unknown, so it is not checked."""

    message: Optional[int]
    budget: Optional[int] = None

    def allow(self, request: int, answer: int, most: Optional[int] = None) -> bool:
        most = self.message if most is None else most
        return (most is None or max(request, answer) <= most) and (self.budget is None or request + answer <= self.budget)


def limits_from(info: results.ServerInfo) -> Limits:
    """The limits that a server reports; 0 means none."""
    return Limits(info.max_message_bytes or None, info.memory_budget_bytes or None)


def without_limits(error: QuantdError) -> Limits:
    """The limits of a server without GetServerInfo; raises all other errors."""
    if error.code is not StatusCode.UNIMPLEMENTED:
        raise error
    return Limits(None)
