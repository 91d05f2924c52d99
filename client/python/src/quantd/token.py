"""The bearer token from a file, which is read again when it changes, so that tokens can be rotated while a client runs."""

import os
import threading
from typing import Any, Optional, Tuple

from .address import is_local
from .choices import flag
from .errors import wrong_value

VARIABLE = "QUANTD_AUTH_TOKEN_FILE"
_MOST_BYTES = 1 << 20


class TokenFile:
    """The token in a file: its first line that is neither blank nor a comment (#). Thread-safe."""

    def __init__(self, path: str):
        self._path = path
        self._lock = threading.Lock()
        self._stamp = self._stamp_now()
        self._metadata = self._read()

    def _stamp_now(self) -> Tuple[int, int, int]:
        try:
            info = os.stat(self._path)
        except OSError as error:
            raise type(error)(error.errno, f"auth_token_file: {error.strerror}", str(self._path)) from None
        return info.st_ino, info.st_mtime_ns, info.st_size

    def _read(self) -> Tuple[Tuple[str, str], ...]:
        try:
            with open(self._path, "rb") as file:
                lines = file.read(_MOST_BYTES).split(b"\n")
        except OSError as error:
            raise type(error)(error.errno, f"auth_token_file: {error.strerror}", str(self._path)) from None
        for line in (line.strip() for line in lines):
            if line and not line.startswith(b"#"):
                if not all(33 <= byte <= 126 for byte in line):
                    text = f"auth_token_file: {self._path} holds no token: a line of printable ASCII without spaces"
                    raise wrong_value("auth_token_file", text)
                return (("authorization", f"Bearer {line.decode('ascii')}"),)
        raise wrong_value("auth_token_file", f"auth_token_file: {self._path} holds no token")

    def metadata(self) -> Tuple[Tuple[str, str], ...]:
        """The metadata of a call, with the token. If the file can no longer be read, the last token is used."""
        with self._lock:
            try:
                stamp = self._stamp_now()
                if stamp != self._stamp:
                    self._metadata = self._read()
                    self._stamp = stamp
            except (OSError, ValueError):
                pass  # it may be being replaced
            return self._metadata


class WithToken:
    """A method of a channel of grpc or grpc.aio; adds the token to its calls."""

    def __init__(self, method: Any, token: TokenFile):
        self._method, self._token = method, token

    def __call__(self, *request: Any, **arguments: Any) -> Any:
        """Without a request: a stream of grpc.aio, to which messages are written later."""
        return self._method(*request, metadata=self._token.metadata(), **arguments)

    def future(self, request: Any, **arguments: Any) -> Any:
        return self._method.future(request, metadata=self._token.metadata(), **arguments)


def token_file(path: Optional[str], target: str, encrypted: bool, allow_insecure: bool) -> Optional[TokenFile]:
    """The token of a file, or of QUANTD_AUTH_TOKEN_FILE; None if there is none. Not in plain text over a network, unless allowed."""
    path = path or os.environ.get(VARIABLE) or None
    if path is None:
        return None
    if not (encrypted or flag(allow_insecure, "allow_insecure_token", False) or is_local(target)):
        raise wrong_value(
            "auth_token_file",
            f"auth_token_file: {target} is another machine and there is no TLS, so anyone on the network path could read the token; "
            "give tls_ca, or allow_insecure_token=True",
        )
    return TokenFile(path)
