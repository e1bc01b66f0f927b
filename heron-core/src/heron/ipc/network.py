"""The address at which a process listens on the network."""

from __future__ import annotations

import ipaddress
import socket

from heron.errors import HeronError, known

__all__ = ["listen_endpoint"]


def listen_endpoint(host: str) -> str:
    """Where to bind for others to connect to `host`: an address, an interface or a name of this machine; any port.

    Raises:
        HeronError: when it is none of these.
    """
    interfaces = [name for _, name in socket.if_nameindex()]
    if host in interfaces:
        return f"tcp://{host}:*"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = _resolved(host, interfaces)
    if address.is_unspecified:
        msg = f"heron.network.host: {host!r} is no address that others could connect to; name one of this machine's"
        raise HeronError(msg)
    return f"tcp://[{address}]:*" if address.version == 6 else f"tcp://{address}:*"


def _resolved(host: str, interfaces: list[str]) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except OSError as error:
        msg = (
            f"heron.network.host: {host!r} is neither an address nor a known name ({error.strerror}), nor an interface "
            f"of this machine: {known(interfaces)}"
        )
        raise HeronError(msg) from error
    return ipaddress.ip_address(found[0][4][0])
