"""Client: one object for a server; numpy in, numpy out."""

import functools
import threading
import time
from typing import Any, Callable, Optional

import grpc

from . import calibrate_sync, parameters, requests, results, split
from .base import Base, parsed
from .calibrate import Calibration
from .calibration import Calibrated
from .errors import QuantdError, ResourceExhaustedError, UnavailableError, from_rpc_error
from .retry import Attempts, Deadline
from .stream import Stream


class Client(Base):
    """A connection to a quantd server. Thread safe; close it, or use it in a `with` statement.

    Arrays are returned in their logical shape, with ml_dtypes for what numpy lacks; they are writable and their own. A tensor
    that is larger than the server's messages may be is sent in pieces that give the same bytes as one call. A client is
    of the process that made it: after a fork, make another.

    Parameters
    ----------
    address : str, optional
        "host:port", "host" (port 50051), "unix:/path.sock", or any other gRPC target. Without it that of QUANTD_ADDRESS, or
        else 127.0.0.1:50051.
    timeout : float, optional
        Seconds that a call may take when it names no timeout of its own; None waits for ever.
    credentials : grpc.ChannelCredentials, optional
        Credentials for TLS, made by hand.
    tls_ca, tls_cert, tls_key : str, optional
        PEM files for TLS: the authority that signed the server's certificate; this client's certificate and key. Without
        them those of QUANTD_TLS_CA, QUANTD_TLS_CERT and QUANTD_TLS_KEY; without these too, plain text.
    auth_token_file : str, optional
        File with the token that the server wants (its --auth_token_file); read again when it changes. Without it that of
        QUANTD_AUTH_TOKEN_FILE. Without TLS it is sent over loopback and Unix sockets only.
    allow_insecure_token : bool, optional
        Send it over a network without TLS all the same, for a proxy that adds TLS, say.
    retry : bool, optional
        Whether a call that fails with UNAVAILABLE is made again, as quantd.SERVICE_CONFIG says: up to 5 times, after what
        the server asks to wait, or else after growing random times. A stream that breaks with it is opened again.
    options : sequence of (str, value), optional
        More gRPC channel options. A "grpc.service_config" among them replaces quantd's: its retries, its round robin among
        the address's servers, and its question about their health.
    shared_memory_dir : str, optional
        The directory that the server was given as --shared_memory_dir, for shared and shared_empty; without it that of
        QUANTD_SHARED_MEMORY_DIR.
    """

    @functools.wraps(Base.__init__)
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        self._channel = self._transport.channel()
        # A channel that checks health by itself would not ask a server that says NOT_SERVING. Connects when it is first used.
        self._health_channel = self._transport.channel(check_health=False)
        self._methods = self._transport.methods(self._channel, self._health_channel)
        self._stream = self._methods.pop("stream")
        self._limits: Optional[split.Limits] = None
        self._limits_lock = threading.Lock()

    def close(self) -> None:
        """Close the connection; calls in flight are cancelled."""
        self._channel.close()
        self._health_channel.close()

    def __enter__(self) -> "Client":
        return self

    def __exit__(self, *_) -> None:
        self.close()

    def _ask(self, method: str, request: Any, parse: Callable[[bytes], Any], timeout: Optional[float]):
        return parsed(parse, self._send(method, request.SerializeToString(), self._deadline(timeout)))

    def _send(self, method: str, data: bytes, deadline: Deadline, attempts: Optional[Attempts] = None) -> bytes:
        self._transport.check_process()
        while True:
            try:
                return self._methods[method](data, timeout=deadline.left())
            except grpc.RpcError as error:
                failure = from_rpc_error(error)
            attempts = attempts or Attempts(self._transport.retry, deadline)
            time.sleep(attempts.wait_after(failure))

    def _run(self, request: requests.Request, timeout: Optional[float]) -> results.Result:
        deadline = self._deadline(timeout)
        if split.may_be_large(request):
            result = self._in_pieces(request, self._server_limits(deadline), deadline)
            if result is not None:
                return result
        data = request.encode()
        try:
            answer = self._send(request.operation, data, deadline)
        except ResourceExhaustedError:
            # Perhaps the limit is lower than it was, or than what is worth asking for it.
            result = self._in_pieces(request, self._server_limits(deadline, again=True), deadline)
            if result is None:
                raise
            return result
        except QuantdError as error:
            if not parameters.may_help(request, error):
                raise
            answer = self._give(request, data, deadline)
        return parsed(lambda answer: request.decode(answer, self), answer)

    def _give(self, request: requests.Request, data: bytes, deadline: Deadline) -> bytes:
        """The answer to a request whose parameters the server does not have: they are put there first."""
        failure: Exception
        for puts in parameters.PUTS:
            for _ in range(puts):
                self._send("put_parameters", parameters.put_data(request), deadline)
            try:
                return self._send(request.operation, data, deadline)
            except QuantdError as error:
                if not parameters.may_help(request, error):
                    raise
                failure = error
        raise failure

    def _in_pieces(self, request: requests.Request, limits: split.Limits, deadline: Deadline) -> Optional[results.Result]:
        """The result of a request that is better sent in pieces; None for one that is not."""
        if not request.reference:
            steps = split.plan(request, limits, self)
            return None if steps is None else self._drive(steps, deadline)
        if split.surely_fits(request, limits):
            return None
        stored = request.parameters or self.get_parameters(request.reference, timeout=deadline.left())
        steps = split.plan(parameters.completed(request, stored), limits, self)
        return None if steps is None else parameters.own(self._drive(steps, deadline), request, stored.reference)

    def _calibrate(self, call: Calibration, timeout: Optional[float]) -> Calibrated:
        return calibrate_sync.run(self, call, self._deadline(timeout))

    def _server_limits(self, deadline: Deadline, again: bool = False) -> split.Limits:
        with self._limits_lock:
            if self._limits is None or again:
                self._limits = split.limits_of(lambda: self.info(timeout=deadline.left()))
            return self._limits

    def _drive(self, steps: split.Steps, deadline: Deadline) -> results.Result:
        """Runs the pieces of a call, some at a time: each is sent while others are computed and received."""
        batch = next(steps)
        while True:
            pending = []
            try:
                for piece in batch:
                    if len(pending) >= split.IN_FLIGHT:
                        self._settle(*pending.pop(0), deadline)
                    data = piece.request.encode()
                    self._transport.check_process()
                    pending.append((piece, data, self._methods[piece.request.operation].future(data, timeout=deadline.left())))
                while pending:
                    self._settle(*pending.pop(0), deadline)
            finally:
                for _, _, future in pending:
                    future.cancel()
            try:
                batch = next(steps)
            except StopIteration as done:
                return done.value

    def _settle(self, piece: split.Piece, data: bytes, future, deadline: Deadline) -> None:
        try:
            try:
                answer = future.result()
            except grpc.RpcError as error:
                failure = from_rpc_error(error)
                if not isinstance(failure, UnavailableError):
                    raise failure from None
                attempts = Attempts(self._transport.retry, deadline)
                time.sleep(attempts.wait_after(failure))
                answer = self._send(piece.request.operation, data, deadline, attempts)
            except grpc.FutureCancelledError:
                raise from_rpc_error(future) from None
        except QuantdError as error:
            raise piece.explain(error) from None
        parsed(lambda data: piece.accept(piece.request.decode(data, self)), answer)

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
        self._transport.check_process()
        return Stream(self._stream, max_in_flight, timeout, self, self._transport.retry)
