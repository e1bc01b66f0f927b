"""The address at which the tracker listens."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass

from heron.errors import UsageError

__all__ = ["Address", "parse_address"]

_ADDRESS = re.compile(r"\[(?P<six>[0-9a-fA-F:.]+)\]:(?P<six_port>\d{1,5})|(?P<host>[A-Za-z0-9.-]+):(?P<port>\d{1,5})")


@dataclass(frozen=True, slots=True)
class Address:
    """Where the tracker listens; port 0 is a free one."""

    host: str
    port: int

    @property
    def loopback(self) -> bool:
        """Whether only this machine reaches it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


def parse_address(text: str) -> Address:
    """Return the address of ``HOST:PORT`` or ``[IPV6]:PORT``; raise `UsageError` when the text is none."""
    match = _ADDRESS.fullmatch(text)
    port = int(match["port"] or match["six_port"]) if match else -1
    if match is None or port > 65535:
        msg = f"address {text[:100]!r} is not HOST:PORT, such as 127.0.0.1:8888 or [::1]:8888"
        raise UsageError(msg)
    return Address(match["host"] or match["six"], port)
