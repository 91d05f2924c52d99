"""What Client and AsyncClient need of gRPC besides a channel of their own kind: paths, options, credentials."""

import json
import os
from typing import Any, List, Optional, Sequence, Tuple

import grpc

from . import address as addresses
from . import messages, results, tls
from .retry import SERVICE_CONFIG
from .token import WithToken, token_file

# Tensors are larger than gRPC's default of 4 MiB; the server has the say (--max_message_bytes).
_CHANNEL_OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
PATHS = {operation: f"/{messages.SERVICE}/{name}" for operation, name in messages.METHODS.items()}
PATHS["stream"] = f"/{messages.SERVICE}/Stream"
PATHS["info"] = f"/{messages.SERVICE}/GetServerInfo"
PATHS["health"] = "/grpc.health.v1.Health/Check"


class Transport:
    """Where a client's server is and how it is spoken to; see Client for the arguments."""

    def __init__(self, address: Optional[str], credentials, options: Sequence, retry: bool,
                 auth_token_file: Optional[str] = None, allow_insecure_token: bool = False, **files: Optional[str]):
        self.address, options = addresses.target(address), list(options)
        if credentials is not None and any(files.values()):
            raise ValueError("credentials and tls_ca, tls_cert or tls_key: give one or the other")
        self._credentials = credentials if credentials is not None else tls.credentials(**files)
        encrypted = self._credentials is not None
        self._token = token_file(auth_token_file, self.address, encrypted, allow_insecure_token)
        self._options: List[Tuple[str, Any]] = [*_CHANNEL_OPTIONS, *options]
        theirs = any(name == "grpc.service_config" for name, _ in options)
        if not theirs:
            balancing = {name: value for name, value in SERVICE_CONFIG.items() if name != "methodConfig"}
            self._options.append(("grpc.service_config", json.dumps(balancing)))
        self.retry = bool(retry) and not theirs
        self._process = os.getpid()

    def channel(self, module=grpc):
        """A channel, of grpc or of grpc.aio."""
        if self._credentials is None:
            return module.insecure_channel(self.address, self._options)
        return module.secure_channel(self.address, self._credentials, self._options)

    def methods(self, channel):
        """Every method of a channel, by name. No serializers: sent are bytes already, received is read where it lies."""
        made = {name: channel.unary_unary(path) for name, path in PATHS.items() if name != "stream"}
        made["stream"] = channel.stream_stream(PATHS["stream"])
        return made if self._token is None else {name: WithToken(method, self._token) for name, method in made.items()}

    def check_process(self) -> None:
        """A channel does not survive a fork: a call on it would wait for ever."""
        if os.getpid() != self._process:
            raise RuntimeError(
                f"this client was made by process {self._process} and this is {os.getpid()}: make a client after the fork"
            )


def server_info(data: bytes) -> results.ServerInfo:
    """The result of a received GetServerInfoResponse."""
    return results.server_info(messages.GetServerInfoResponse.FromString(data))


def health(data: bytes) -> str:
    """The result of a received HealthCheckResponse."""
    status = messages.HealthCheckResponse.FromString(data).status
    known = messages.HealthCheckResponse.DESCRIPTOR.fields_by_name["status"].enum_type.values_by_number
    return known[status].name if status in known else "UNKNOWN"
