"""TLS: makes gRPC credentials from PEM files in the arguments or the environment."""

import os
from typing import Dict, Optional

import grpc

from .errors import wrong_value

_VARIABLES = {"tls_ca": "QUANTD_TLS_CA", "tls_cert": "QUANTD_TLS_CERT", "tls_key": "QUANTD_TLS_KEY"}


def _read(name: str, path: Optional[str]) -> Optional[bytes]:
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            content = file.read()
    except OSError as error:
        raise type(error)(error.errno, f"{name}: {error.strerror}", str(path)) from None
    if b"-----BEGIN " not in content:
        raise wrong_value(name, f"{name}: {path} is not a PEM file")
    return content


def credentials(**files: Optional[str]) -> Optional[grpc.ChannelCredentials]:
    """Channel credentials from the files tls_ca, tls_cert and tls_key; None (plain text) if there are none.

    A file that is not given is replaced by QUANTD_TLS_CA, QUANTD_TLS_CERT or QUANTD_TLS_KEY, if that is set.
    """
    paths = {name: files.get(name) or os.environ.get(variable) or None for name, variable in _VARIABLES.items()}
    if not any(paths.values()):
        return None
    if (paths["tls_cert"] is None) != (paths["tls_key"] is None):
        have, lack = ("tls_cert", "tls_key") if paths["tls_cert"] else ("tls_key", "tls_cert")
        raise wrong_value(lack, f"{have} is given ({paths[have]}), {lack} is not: a client's certificate needs both")
    content: Dict[str, Optional[bytes]] = {name: _read(name, path) for name, path in paths.items()}
    return grpc.ssl_channel_credentials(content["tls_ca"], content["tls_key"], content["tls_cert"])
