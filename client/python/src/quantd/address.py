"""Addresses: converts what a user writes to a gRPC target."""

import os
import re
from typing import Optional

from .errors import wrong_type, wrong_value

VARIABLE = "QUANTD_ADDRESS"
DEFAULT_PORT = 50051
DEFAULT = f"127.0.0.1:{DEFAULT_PORT}"

# Targets without a port, or with a form that their resolver defines.
_AS_THEY_ARE = ("unix:", "unix-abstract:", "vsock:", "xds:", "google-c2p:", "passthrough:")


def _with_port(host: str) -> str:
    """host:port of host, host:port, [v6]:port, [v6] or a bare IPv6 address."""
    if host.startswith("["):
        address, bracket, port = host.partition("]")
        if not bracket or (port and not port.startswith(":")):
            raise wrong_value("address", f"address {host!r}: an address that begins with [ must be [IPv6 address] or [IPv6 address]:port")
        return f"{address}]:{_port(host, port[1:])}"
    if host.count(":") > 1:  # more colons than a port needs: IPv6 without brackets
        return f"[{host}]:{DEFAULT_PORT}"
    name, _, port = host.partition(":")
    if not name:
        raise wrong_value("address", f"address {host!r} names no host")
    return f"{name}:{_port(host, port)}"


def _port(host: str, port: str) -> str:
    """A valid port. gRPC reads 99999 as 34463, and a word as 0."""
    if port and not (re.fullmatch("[0-9]{1,5}", port) and 0 < int(port) < 1 << 16):
        raise wrong_value("address", f"address {host!r}: port {port!r} must be a number from 1 to 65535")
    return port or str(DEFAULT_PORT)


def is_local(target: str) -> bool:
    """Whether data sent to the target stays on this machine: Unix sockets and loopback."""
    if target.startswith(("unix:", "unix-abstract:")):
        return True
    hosts = re.sub(r"^(dns:(//[^/]*/)?|ipv4:|ipv6:)", "", target).split(",")
    return all(re.fullmatch(r"(127(\.\d{1,3}){3}|localhost|\[::1\])(:\d+)?", host) is not None for host in hosts)


def target(given: Optional[str] = None) -> str:
    """The gRPC target of an address: the argument, or else QUANTD_ADDRESS, or else 127.0.0.1:50051.

    A host without a port gets 50051; so do hosts in dns:, ipv4: and ipv6: targets. Other targets are unchanged.
    """
    address = given if given is not None else os.environ.get(VARIABLE) or DEFAULT
    if not isinstance(address, str):
        raise wrong_type("address", f"address is {address!r}, must be a string such as {DEFAULT!r}")
    address = address.strip()
    if not address:
        raise wrong_value("address", f"address is empty; give one such as {DEFAULT!r}")
    if address.startswith(_AS_THEY_ARE):
        return address
    if re.match(r"https?://", address):
        raise wrong_value("address", f"address {address!r}: quantd speaks gRPC; give host:port, and tls_ca= for TLS")
    scheme = re.match(r"(dns):(//[^/]*/)?|(ipv4|ipv6):(?!//)", address)
    if scheme is None:
        return address if "://" in address else _with_port(address)
    return scheme.group() + ",".join(_with_port(host) for host in address[scheme.end() :].split(","))
