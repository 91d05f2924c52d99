"""Base: what Client and AsyncClient share besides the operations: their arguments, and questions about the server."""

from typing import Any, Callable, Generic, NoReturn, Optional, Sequence, Tuple, TypeVar

import grpc

from . import calls, messages
from .choices import seconds
from .operations import ADequantized, ADynamicQuantized, AQuantized, AQuantizedEmbeddings, Operations
from .shared import SharesMemory
from .transport import Transport, health, server_info

AServerInfo = TypeVar("AServerInfo")
AText = TypeVar("AText")


class Base(
    Operations[AQuantized, ADequantized, ADynamicQuantized, AQuantizedEmbeddings],
    SharesMemory,
    Generic[AQuantized, ADequantized, ADynamicQuantized, AQuantizedEmbeddings, AServerInfo, AText],
):
    """A client without the sending: subclasses implement `_drive`, and choose the type of results."""

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
        options: Sequence[Tuple[str, Any]] = (),
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
        self.address: str = self._transport.address
        self._shared_memory_dir = shared_memory_dir
        self._timeout = seconds(timeout)
        self._connect()

    def _connect(self) -> None:
        raise NotImplementedError

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"this {type(self).__name__} belongs to its process and can't be pickled or copied: make one where it is used")

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self.address}>"

    def _ask(self, method: str, request: Any, parse: Callable[[bytes], Any], timeout: Optional[float]) -> Any:
        return self._drive(calls.ask(self, method, request, parse, self._deadline(timeout)))

    def info(self, *, timeout: Optional[float] = None) -> AServerInfo:
        """Ask for version, instruction set, threads and limits of the server.

        Parameters
        ----------
        timeout : float, optional
            Seconds that the call may take.

        Returns
        -------
        ServerInfo
            What the server says. AsyncClient returns an awaitable of it.
        """
        return self._ask("info", messages.GetServerInfoRequest(), server_info, timeout)

    def health(self, service: str = "", *, timeout: Optional[float] = None) -> AText:
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
            "SERVING", "NOT_SERVING" or "UNKNOWN". AsyncClient returns an awaitable of it.
        """
        return self._ask("health", messages.HealthCheckRequest(service=service), health, timeout)
