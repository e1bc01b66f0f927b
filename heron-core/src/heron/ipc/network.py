"""The address at which a process listens on the network."""

from __future__ import annotations

import ipaddress
import socket

from heron.errors import HeronError, known

__all__ = ["check_listening", "listen_endpoint"]


def listen_endpoint(host: str, *, anywhere: bool = False) -> str:
    """Where to bind for others to connect to `host`: an address, an interface or a name of this machine; any port.

    `anywhere` also takes the unspecified address, to which nobody can connect.

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
    if address.is_unspecified and not anywhere:
        msg = f"heron.network.host: {host!r} is no address that others could connect to; name one of this machine's"
        raise HeronError(msg)
    return f"tcp://[{address}]:*" if address.version == 6 else f"tcp://{address}:*"


def check_listening(host: str) -> None:
    """Whether a process of this machine could listen there.

    Raises:
        HeronError: as `listen_endpoint`, and when the address is another machine's.
    """
    endpoint = listen_endpoint(host)
    if host in (name for _, name in socket.if_nameindex()):
        return
    address = ipaddress.ip_address(endpoint.removeprefix("tcp://").removesuffix(":*").strip("[]"))
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((str(address), 0))
    except OSError as error:
        msg = f"heron.network.host: cannot listen at {host!r} ({address}): {error.strerror}; is it this machine?"
        raise HeronError(msg) from error


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
