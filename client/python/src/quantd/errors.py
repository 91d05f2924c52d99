"""Errors: every failed call raises QuantdError, or the subclass of its gRPC code, with the server's details parsed."""

from dataclasses import dataclass
from typing import Any, Dict, Optional, Sequence, Tuple, Type

import grpc
from grpc import StatusCode


@dataclass(frozen=True)
class FieldViolation:
    """A field of the request that is wrong, and why."""

    field: str
    description: str


class QuantdError(Exception):
    """A call that failed.

    code: the gRPC status code. message: the server's text, which names the field and the numbers.
    field_violations: the wrong fields, where the server says which. reason: a constant to branch on.
    retry_after: seconds to wait before another try, where the server says so. no_retry: it says that there shall be none.
    Errors can be pickled, so they cross to and from the workers of multiprocessing.
    """

    def __init__(
        self,
        code: StatusCode,
        message: str,
        field_violations: Sequence[FieldViolation] = (),
        reason: Optional[str] = None,
        metadata: Optional[Dict[str, str]] = None,
        retry_after: Optional[float] = None,
        no_retry: bool = False,
    ):
        super().__init__(f"{code.name}: {message}")
        self.code: StatusCode = code
        self.message: str = message
        self.field_violations: Tuple[FieldViolation, ...] = tuple(field_violations)
        self.reason: Optional[str] = reason
        self.metadata: Dict[str, str] = dict(metadata or {})
        self.retry_after: Optional[float] = retry_after
        self.no_retry: bool = no_retry

    def __reduce__(self) -> "Tuple[Any, ...]":
        return type(self), (
            self.code, self.message, self.field_violations, self.reason, self.metadata, self.retry_after, self.no_retry
        )

    @property
    def field(self) -> Optional[str]:
        """Path of the first wrong field, such as "scale"."""
        return self.field_violations[0].field if self.field_violations else None


class InvalidArgumentError(QuantdError, ValueError):
    """The request is wrong; field_violations says where."""


class ArgumentError(InvalidArgumentError):
    """An argument that no request can be made of: nothing was sent."""

    def __str__(self) -> str:
        return self.message


class ArgumentTypeError(ArgumentError, TypeError):
    """The same of an argument that has a wrong type, or is missing."""


class ResourceExhaustedError(QuantdError):
    """The request, or its answer, is larger than the server allows."""


class UnavailableError(QuantdError, ConnectionError):
    """No server there, or it is overloaded or draining; worth a retry after retry_after seconds."""


class DeadlineExceededError(QuantdError, TimeoutError):
    """The timeout passed before the answer came."""


def cancelled() -> QuantdError:
    """What is still open fails with, when its stream is dropped."""
    return QuantdError(StatusCode.CANCELLED, "Cancelled by the client")


_CLASSES: Dict[StatusCode, Type[QuantdError]] = {
    StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    StatusCode.RESOURCE_EXHAUSTED: ResourceExhaustedError,
    StatusCode.UNAVAILABLE: UnavailableError,
    StatusCode.DEADLINE_EXCEEDED: DeadlineExceededError,
}
_CODES = {code.value[0]: code for code in StatusCode}


def of_code(code: StatusCode, *arguments: Any, **details: Any) -> QuantdError:
    """The exception of a status code's class."""
    return _CLASSES.get(code, QuantdError)(code, *arguments, **details)


def wrong_value(field: str, message: str) -> ArgumentError:
    """The exception for an argument of a right type."""
    return ArgumentError(StatusCode.INVALID_ARGUMENT, message, [FieldViolation(field, message)])


def wrong_type(field: str, message: str) -> ArgumentTypeError:
    """The exception for an argument of a wrong type."""
    return ArgumentTypeError(StatusCode.INVALID_ARGUMENT, message, [FieldViolation(field, message)])


def invalid(field: str, message: str) -> InvalidArgumentError:
    """What a server would answer to a request that it is not sent."""
    violations = [FieldViolation(field, message)]
    return InvalidArgumentError(StatusCode.INVALID_ARGUMENT, message, violations, reason="INVALID_ARGUMENT", metadata={})


def from_rpc_error(error: "grpc.RpcError") -> QuantdError:
    """The exception for a failed call, with what grpc-status-details-bin and grpc-retry-pushback-ms say."""
    from . import messages

    trailers = {key: value for key, value in (error.trailing_metadata() or ())}
    violations, reason, metadata, retry_after = [], None, None, None
    try:
        status = messages.Status.FromString(trailers.get("grpc-status-details-bin", b""))
        for detail in status.details:
            name = detail.type_url.rpartition("/")[2]
            if name == "google.rpc.BadRequest":
                for violation in messages.BadRequest.FromString(detail.value).field_violations:
                    violations.append(FieldViolation(violation.field, violation.description))
            elif name == "google.rpc.ErrorInfo":
                info = messages.ErrorInfo.FromString(detail.value)
                reason, metadata = info.reason, dict(info.metadata)
            elif name == "google.rpc.RetryInfo":
                delay = messages.RetryInfo.FromString(detail.value).retry_delay
                retry_after = max(delay.seconds + delay.nanos * 1e-9, 0.0)
    except Exception:  # details that do not parse must not hide the status itself
        pass
    no_retry = False
    if "grpc-retry-pushback-ms" in trailers:
        pushback = str(trailers["grpc-retry-pushback-ms"])
        no_retry = not pushback.isdecimal()  # a negative number, or none: the server wants no other attempt
        retry_after = retry_after if no_retry else int(pushback) / 1000
    code, text = error.code() or StatusCode.UNKNOWN, error.details() or ""
    if "Failed parsing HTTP/2" in text or "http1.x server" in text:
        # Nothing is different at the next attempt.
        text, no_retry = f"{text} (the server answered, but not in plain HTTP/2: does it need TLS? See tls_ca and QUANTD_TLS_CA)", True
    if code is StatusCode.CANCELLED and text.startswith("Received RST_STREAM"):
        # A server or proxy that dropped the call, such as one that stops: nobody here cancelled it.
        code = StatusCode.UNAVAILABLE
    return of_code(
        code,
        text,
        violations,
        reason=reason,
        metadata=metadata,
        retry_after=retry_after,
        no_retry=no_retry,
    )


def wrong_answer(why: Exception) -> QuantdError:
    """The exception for an answer that is none to its request."""
    return QuantdError(StatusCode.INTERNAL, f"the server's answer is wrong: {why}")


def from_item_error(item: Any) -> QuantdError:
    """The exception for one failed item of a stream."""
    code = _CODES.get(item.code, StatusCode.UNKNOWN)
    return of_code(code, item.message, [FieldViolation(v.field, v.description) for v in item.field_violations])
