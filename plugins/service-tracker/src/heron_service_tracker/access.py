"""Who may ask: the tokens of requests, and the checks against pages of other sites.

A page of another site can make a browser send requests to this machine. Its requests name that site in `Origin`, or,
after its name was bound to this address, in `Host`. Both are refused, so such a page reads nothing.
"""

from __future__ import annotations

import hmac
import ipaddress
import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heron.errors import ConfigError, UsageError
from heron_service_tracker.problems import problem_response

__all__ = ["Access", "AccessCheck", "Address", "parse_address", "read_token"]

_LEAST_TOKEN = 16  # characters: fewer can be guessed over a network
_ADDRESS = re.compile(r"\[(?P<six>[0-9a-fA-F:.]+)\]:(?P<six_port>\d{1,5})|(?P<host>[A-Za-z0-9.-]+):(?P<port>\d{1,5})")
_HOST = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::\d{1,5})?")
_SECURITY_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}


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


@dataclass(frozen=True, slots=True)
class Access:
    """The rules of one tracker: its address, the token that requests need ("" for none), and further names of it."""

    address: Address
    token: str = ""
    names: tuple[str, ...] = ()

    def serves(self, host: str) -> bool:
        """Return whether a Host header names this tracker. With a token, every name is fine."""
        match = _HOST.fullmatch(host.lower())
        if match is None:
            return False
        own = {"localhost", "127.0.0.1", "[::1]", *(name.lower() for name in self.names)}
        address = self.address.host
        own.add(f"[{address}]" if ":" in address else address.lower())
        return bool(self.token) or match["host"] in own

    def admits(self, authorization: str) -> bool:
        """Return whether the Authorization header has the token; the time does not depend on where it differs."""
        scheme, _, given = authorization.partition(" ")
        return scheme.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), self.token.encode())


def parse_address(text: str) -> Address:
    """Return the address of ``HOST:PORT`` or ``[IPV6]:PORT``; raise `UsageError` when the text is none."""
    match = _ADDRESS.fullmatch(text)
    port = int(match["port"] or match["six_port"]) if match else -1
    if match is None or port > 65535:
        msg = f"address {text[:100]!r} is not HOST:PORT, such as 127.0.0.1:8888 or [::1]:8888"
        raise UsageError(msg)
    return Address(match["host"] or match["six"], port)


def read_token(file: Path | None, variable: str | None) -> str:
    """Return the token of a file or of a variable of the environment; "" without both.

    Raises:
        ConfigError: when the file is readable for others, or there is no token of at least 16 printable characters.
    """
    if file is not None:
        try:
            mode, text = stat.S_IMODE(file.stat().st_mode), file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            msg = f"the token file {str(file)!r} cannot be read: {error}"
            raise ConfigError(msg) from error
        if mode & 0o077:
            msg = f"the token file {str(file)!r} has mode {mode:04o}; others can read it: `chmod 600` it"
            raise ConfigError(msg)
        return _checked(text, f"the token file {str(file)!r}")
    if variable is not None:
        if variable not in os.environ:
            msg = f"the environment has no variable {variable!r}, which has to hold the token"
            raise ConfigError(msg)
        return _checked(os.environ[variable], f"the variable {variable!r}")
    return ""


def _checked(text: str, place: str) -> str:
    token = text.strip()
    if len(token) < _LEAST_TOKEN or not all("!" <= each <= "~" for each in token):
        msg = f"{place} has no token of at least {_LEAST_TOKEN} printable ASCII characters without blanks"
        raise ConfigError(msg)
    return token


class AccessCheck:
    """Refuses requests that the rules do not admit, and adds security headers to every response."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        self._app = app
        self._access = access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request; the server calls it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY_HEADERS.items():
                    headers[name] = value
            await send(message)

        headers = Headers(scope=scope)
        if refusal := self._refusal(headers):
            status, detail = refusal
            wanted = {"www-authenticate": "Bearer"} if status == 401 else None
            await problem_response(status, detail, wanted)(scope, receive, send_secured)
            return
        await self._app(scope, receive, send_secured)

    def _refusal(self, headers: Headers) -> tuple[int, str] | None:
        host, origin = headers.get("host", ""), headers.get("origin")
        if len(headers.getlist("host")) != 1 or not self._access.serves(host):
            return 403, "the Host header does not name this tracker; `--host NAME` adds a name"
        if origin is not None and origin.lower() not in (f"http://{host.lower()}", f"https://{host.lower()}"):
            return 403, "the request comes from a page of another site"
        if self._access.token and not self._access.admits(headers.get("authorization", "")):
            return 401, "send the token of the tracker: `Authorization: Bearer TOKEN`"
        return None
