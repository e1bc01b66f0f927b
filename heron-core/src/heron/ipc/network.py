"""The network address at which a process listens."""

from __future__ import annotations

import ipaddress
import socket

from heron.errors import HeronError, known

__all__ = ["check_listening", "listen_endpoint"]


def listen_endpoint(host: str, *, anywhere: bool = False) -> str:
    """The endpoint to bind, at any port. `host` is an address, an interface or a name of this machine.

    With `anywhere`, `host` may also be the unspecified address, which peers cannot connect to.

    Raises:
        HeronError: when `host` is neither of them.
    """
    interfaces = [name for _, name in socket.if_nameindex()]
    if host in interfaces:
        return f"tcp://{host}:*"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        address = _resolved(host, interfaces)
    if address.is_unspecified and not anywhere:
        msg = f"heron.network.host: peers cannot connect to {host!r}; set an address of this machine"
        raise HeronError(msg)
    return f"tcp://[{address}]:*" if address.version == 6 else f"tcp://{address}:*"


def check_listening(host: str) -> None:
    """Checks that a process of this machine can listen at `host`.

    Raises:
        HeronError: as in `listen_endpoint`, and when the address belongs to another machine.
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
