"""The parts of gRPC that Client and AsyncClient share, apart from their channels: paths, options, credentials."""

import dataclasses
import json
import os
from typing import Any, Dict, List, Optional, Sequence, Tuple

import grpc

from . import address as addresses
from . import messages, results, tls
from .choices import flag
from .errors import wrong_value
from .retry import SERVICE_CONFIG
from .token import WithToken, token_file

# Tensors are larger than gRPC's default of 4 MiB; the server sets the limit (--max_message_bytes).
_CHANNEL_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
# A name is resolved again when a connection is lost, but not more often than this: gRPC's default of 30 s is longer than a rolling
# restart may need to replace every server that this client knows.
_CHANNEL_OPTIONS += [("grpc.dns_min_time_between_resolutions_ms", 5000)]
# A failed connection is retried after 0.1 s, then less often, but once a second at least: gRPC's defaults are 1 s and two minutes.
_CHANNEL_OPTIONS += [("grpc.initial_reconnect_backoff_ms", 100), ("grpc.max_reconnect_backoff_ms", 1000)]
PATHS = {operation: f"/{messages.SERVICE}/{name}" for operation, name in messages.METHODS.items()}
PATHS["stream"] = f"/{messages.SERVICE}/Stream"
PATHS["info"] = f"/{messages.SERVICE}/GetServerInfo"
PATHS["health"] = "/grpc.health.v1.Health/Check"


_process = os.getpid()  # asked for here, because every call compares it


def _in_child() -> None:
    global _process
    _process = os.getpid()


if hasattr(os, "register_at_fork"):  # elsewhere there is no fork
    os.register_at_fork(after_in_child=_in_child)


class Transport:
    """The server's address, and how to connect to it; for the arguments see Client."""

    def __init__(self, address: Optional[str], credentials: Optional[grpc.ChannelCredentials], options: Sequence[Tuple[str, Any]], retry: bool,
                 auth_token_file: Optional[str] = None, allow_insecure_token: bool = False, **files: Optional[str]):
        self.address: str = addresses.target(address)
        if credentials is not None and any(files.values()):
            raise wrong_value("credentials", "credentials and tls_ca, tls_cert or tls_key: give one or the other")
        self._credentials = credentials if credentials is not None else tls.credentials(**files)
        encrypted = self._credentials is not None
        self._token = token_file(auth_token_file, self.address, encrypted, allow_insecure_token)
        given = {name for name, _ in options}
        # gRPC uses http_proxy even for this machine, where no proxy can help, and a remote proxy would read the token.
        ours = [*_CHANNEL_OPTIONS, ("grpc.enable_http_proxy", int(not addresses.is_local(self.address)))]
        self._options: List[Tuple[str, Any]] = [*(option for option in ours if option[0] not in given), *options]
        theirs = "grpc.service_config" in given
        self._config = {} if theirs else {name: value for name, value in SERVICE_CONFIG.items() if name != "methodConfig"}
        self.retry: bool = flag(retry, "retry", True) and not theirs
        self._process = os.getpid()

    def channel(self, module: Any = grpc, *, check_health: bool = True) -> Any:
        """A channel of grpc or of grpc.aio; unless `check_health`, it uses a server whatever its health is."""
        config = {name: value for name, value in self._config.items() if check_health or name != "healthCheckConfig"}
        options = [*self._options, ("grpc.service_config", json.dumps(config))] if config else self._options
        if self._credentials is None:
            return module.insecure_channel(self.address, options)
        return module.secure_channel(self.address, self._credentials, options)

    def methods(self, channel: Any, any_channel: Any) -> Dict[str, Any]:
        """All methods, by name. They have no serializers: requests are bytes already, and responses are read in place.

        That of health uses the second channel, and so does `any_` and a name: for a call after health has refused every server, because
        health chooses among servers and vetoes none.
        """
        made = {name: channel.unary_unary(path) for name, path in PATHS.items() if name not in ("stream", "health")}
        made["stream"] = channel.stream_stream(PATHS["stream"])
        made.update({f"any_{name}": any_channel.unary_unary(PATHS[name]) for name in made if name != "stream"})
        made["any_stream"] = any_channel.stream_stream(PATHS["stream"])
        if self._token is not None:
            made = {name: WithToken(method, self._token) for name, method in made.items()}
        made["health"] = any_channel.unary_unary(PATHS["health"])  # without the token
        return made

    @property
    def is_here(self) -> bool:
        """Whether this is the process that made the client. A channel does not survive a fork: using or closing it would block for ever."""
        return _process == self._process

    def check_process(self, what: str = "client") -> None:
        """Raises unless this is the process that made the client."""
        if _process != self._process:
            raise self.of_another_process(what)

    def of_another_process(self, what: str) -> RuntimeError:
        """The error for a client or a stream in a child of fork."""
        return RuntimeError(f"this {what} was made by process {self._process} and this is {os.getpid()}: make a client after the fork")


def server_info(data: bytes) -> results.ServerInfo:
    """The result of a received GetServerInfoResponse."""
    message = messages.GetServerInfoResponse.FromString(data)
    found = {part.name: getattr(message, part.name) for part in dataclasses.fields(results.ServerInfo)}
    return results.ServerInfo(**{**found, "supported_targets": tuple(message.supported_targets), "extensions": tuple(message.extensions)})


def health(data: bytes) -> str:
    """The result of a received HealthCheckResponse."""
    status = messages.HealthCheckResponse.FromString(data).status
    known = messages.HealthCheckResponse.DESCRIPTOR.fields_by_name["status"].enum_type.values_by_number
    return known[status].name if status in known else "UNKNOWN"
