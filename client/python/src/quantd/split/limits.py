"""Limits of a server: how large a message may be, and how large pieces of a tensor are made."""

from typing import NamedTuple, Optional

from .. import results
from ..errors import QuantdError, StatusCode

# Measured beside one message (tests/bench/run.sh client): of 64 MiB, pieces of 1 MiB, eight in flight, take 0.6 to 0.7 of
# the time, as one is sent while another is computed and received, and all in memory that was used before; of 16 MiB they
# take as long. Sent as calls of their own they are as fast as on one stream, and errors and retries are those of calls.
PIECE_BYTES = 1 << 20
LARGE_BYTES = 12 << 20
IN_FLIGHT = 8


class Limits(NamedTuple):
    """Bytes that a message, and a request with its answer, may have; None: not known, and so not looked at."""

    message: Optional[int]
    budget: Optional[int] = None

    def allow(self, request: int, answer: int, most: Optional[int] = None) -> bool:
        most = self.message if most is None else most
        return (most is None or max(request, answer) <= most) and (self.budget is None or request + answer <= self.budget)


def limits_from(info: results.ServerInfo) -> Limits:
    """The limits that a server names; 0 is none."""
    return Limits(info.max_message_bytes or None, info.memory_budget_bytes or None)


def without_limits(error: QuantdError) -> Limits:
    """The limits of a server that has no GetServerInfo; raises any other error than that."""
    if error.code is not StatusCode.UNIMPLEMENTED:
        raise error
    return Limits(None)
