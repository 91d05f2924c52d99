"""Base: what Client and AsyncClient have in common besides the operations: their arguments, and questions about the server."""

from typing import Any, Callable, Optional, Sequence

import grpc

from . import messages
from .errors import QuantdError, wrong_answer
from .operations import Operations
from .retry import Deadline
from .transport import Transport, health, server_info


class Base(Operations):
    """A client, less who sends: `_run` (see Operations) and `_ask` are a subclass's, and so are their results' being awaitables."""

    def __init__(
        self,
        address: Optional[str] = None,
        *,
        timeout: Optional[float] = None,
        credentials: Optional[grpc.ChannelCredentials] = None,
        tls_ca: Optional[str] = None,
        tls_cert: Optional[str] = None,
        tls_key: Optional[str] = None,
        auth_token_file: Optional[str] = None,
        allow_insecure_token: bool = False,
        retry: bool = True,
        options: Sequence = (),
        shared_memory_dir: Optional[str] = None,
    ):
        self._transport = Transport(
            address,
            credentials,
            options,
            retry,
            auth_token_file,
            allow_insecure_token,
            tls_ca=tls_ca,
            tls_cert=tls_cert,
            tls_key=tls_key,
        )
        self.address = self._transport.address
        self._shared_memory_dir = shared_memory_dir
        self._timeout = timeout

    def _deadline(self, timeout: Optional[float]) -> Deadline:
        return Deadline(self._timeout if timeout is None else timeout)

    def _ask(self, method: str, request: Any, parse: Callable[[bytes], Any], timeout: Optional[float]):
        raise NotImplementedError

    def info(self, *, timeout: Optional[float] = None):
        """Ask for version, instruction set, threads and limits of the server.

        Parameters
        ----------
        timeout : float, optional
            Seconds that the call may take.

        Returns
        -------
        ServerInfo
            What the server says. Of AsyncClient an awaitable of it.
        """
        return self._ask("info", messages.GetServerInfoRequest(), server_info, timeout)

    def health(self, service: str = "", *, timeout: Optional[float] = None):
        """Ask for the server's health.

        Parameters
        ----------
        service : str, optional
            Name of a gRPC service; "" is the whole server.
        timeout : float, optional
            Seconds that the call may take.

        Returns
        -------
        str
            "SERVING", "NOT_SERVING" or "UNKNOWN". Of AsyncClient an awaitable of it.
        """
        return self._ask("health", messages.HealthCheckRequest(service=service), health, timeout)


def parsed(parse, data: bytes):
    """parse(data); whatever else it raises than QuantdError is the server's fault, which sent the data."""
    try:
        return parse(data)
    except QuantdError:
        raise
    except Exception as error:  # of numpy, protobuf or ours: whatever a server can make wrong
        raise wrong_answer(error) from None
