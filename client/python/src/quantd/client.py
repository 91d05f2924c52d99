"""Client: one object per server; numpy in, numpy out."""

import collections
import time
import traceback
from typing import Any, Deque, Iterator, Optional, Tuple

import grpc

from . import calls, split
from .base import Base
from .errors import QuantdError, from_rpc_error
from .results import Dequantized, DynamicQuantized, Quantized, QuantizedEmbeddings, ServerInfo
from .stream import Stream


class Client(
    Base[Quantized[Dequantized], Dequantized, DynamicQuantized[Dequantized], QuantizedEmbeddings, ServerInfo, str]
):
    """A connection to a quantd server. Thread-safe; close it, or use it in a `with` statement.

    Arrays are returned in their logical shape, with ml_dtypes for types that numpy lacks; they are writable, and nothing else has their memory. A
    tensor that is larger than the server's limit for messages is sent in pieces that give the same bytes as one call. A client belongs
    to the process that made it: after a fork, make another.

    Parameters
    ----------
    address : str, optional
        "host:port", "host" (port 50051), "unix:/path.sock", or any other gRPC target. By default QUANTD_ADDRESS, or
        else 127.0.0.1:50051.
    timeout : float, optional
        Seconds that a call may take if it has no timeout of its own; None: no limit.
    credentials : grpc.ChannelCredentials, optional
        gRPC's own credentials for TLS.
    tls_ca, tls_cert, tls_key : str, optional
        PEM files for TLS: the authority that signed the server's certificate; this client's certificate and key. By default
        those of QUANTD_TLS_CA, QUANTD_TLS_CERT and QUANTD_TLS_KEY; if these are not set either, connections are plain text.
    auth_token_file : str, optional
        File with the token that the server requires (its --auth_token_file); read again when it changes. By default that of
        QUANTD_AUTH_TOKEN_FILE. Without TLS the token is sent over loopback and Unix sockets only.
    allow_insecure_token : bool, optional
        Send the token over a network without TLS, too, for example to a proxy that adds TLS.
    retry : bool, optional
        Whether a call that fails with UNAVAILABLE is made again, after the time that the server asks for, or else after growing random
        times: until its timeout while no server has processed anything of it, so that a restart costs no call; 5 times if its
        connection was lost on the way, or if it has no timeout. A stream that breaks with UNAVAILABLE is opened again.
    options : sequence of (str, value), optional
        More gRPC channel options. A "grpc.service_config" among them replaces quantd's: its retries, its round robin among
        the address's servers, and its health checks.
    shared_memory_dir : str, optional
        The server's --shared_memory_dir, for shared and shared_empty; by default that of
        QUANTD_SHARED_MEMORY_DIR.
    """

    def _connect(self) -> None:
        self._closed = False
        self._channel = self._transport.channel()
        # For the question whether a server is healthy, and for calls if none is. Connects on first use.
        self._any_channel = self._transport.channel(check_health=False)
        self._methods = self._transport.methods(self._channel, self._any_channel)

    def close(self) -> None:
        """Close the connection; calls in flight are cancelled. Does nothing in a child of fork: the parent owns the connection."""
        self._closed = True
        if self._transport.is_here:
            self._channel.close()
            self._any_channel.close()

    def stream(self, *, max_in_flight: int = 16, timeout: Optional[float] = None) -> Stream:
        """Open a stream of many calls; see Stream.

        Parameters
        ----------
        max_in_flight : int, optional
            Calls that may be unanswered at a time.
        timeout : float, optional
            Seconds for the whole stream; None: no such limit.

        Returns
        -------
        Stream
            To be used in a `with` statement.
        """
        return Stream(self, max_in_flight, timeout)

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def _method(self, name: str) -> Any:
        self._transport.check_process()
        if self._closed:
            raise ValueError("this client is closed")
        return self._methods[name]

    def _drive(self, steps: calls.Steps[Any], outcome: Any = None) -> Any:
        """The result of a call whose last step had this outcome."""
        try:
            while True:
                try:
                    step = steps.throw(outcome) if isinstance(outcome, QuantdError) else steps.send(outcome)
                except StopIteration as done:
                    return done.value
                try:
                    outcome = self._do(step)
                except grpc.RpcError as error:
                    outcome = from_rpc_error(error)
                except QuantdError as error:
                    outcome = error
        except QuantdError as error:
            traceback.clear_frames(error.__traceback__)  # they refer to the error, which refers to them: a cycle that includes the request
            raise
        finally:
            outcome = None

    def _do(self, step: calls.Step) -> Any:
        """The outcome of a step."""
        if isinstance(step, calls.Send):
            return self._method(step.method)(step.data, timeout=step.timeout)
        if isinstance(step, calls.Wait):
            return time.sleep(step.seconds)
        return self._together(step.calls)

    def _together(self, each: Iterator[calls.Steps[None]]) -> None:
        """Runs several calls at a time: each is sent while others are computed and received."""
        pending: Deque[Tuple[calls.Steps[None], Any]] = collections.deque()

        def settle() -> None:
            steps, future = pending.popleft()
            self._drive(steps, _outcome(future))

        try:
            for steps in each:
                if len(pending) >= split.IN_FLIGHT:
                    settle()
                first = next(steps)
                assert isinstance(first, calls.Send)
                pending.append((steps, self._method(first.method).future(first.data, timeout=first.timeout)))
            while pending:
                settle()
        finally:
            for _, future in pending:
                future.cancel()


def _outcome(future: Any) -> Any:
    """The result of a future's call, or its error."""
    try:
        return future.result()
    except grpc.RpcError as error:
        return from_rpc_error(error.with_traceback(None))  # `future` itself
    except grpc.FutureCancelledError:
        return from_rpc_error(future)
