"""Who may ask: the tokens of requests, and the checks against pages of other sites.

A page of another site can make a browser send requests to this machine. Its requests name that site in `Origin`, or,
after its name was bound to this address, in `Host`. A request for an image has no `Origin`, but `Sec-Fetch-Site`. All
of them are refused, so such a page reads nothing and starts nothing.
"""

from __future__ import annotations

import hmac
import re
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from heron_service_tracker.http.address import Address
from heron_service_tracker.paths.problems import problem_response

__all__ = ["Access", "AccessCheck"]

_HOST = re.compile(r"(?P<host>\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::\d{1,5})?")
_FOREIGN = frozenset({"cross-site", "same-site"})  # of `Sec-Fetch-Site`; pages of another port are of the same site
_SECURITY_HEADERS = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_WITH_REFUSAL = {400: {"connection": "close"}, 401: {"www-authenticate": "Bearer"}}


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


class AccessCheck:
    """Refuses requests that the rules do not admit, and adds security headers to every response.

    Paths that match `open_paths` hold no data of topologies, such as the files of a page, and need no token. Their
    responses may have headers in place of those of `_SECURITY_HEADERS`.
    """

    def __init__(self, app: ASGIApp, access: Access, open_paths: re.Pattern[str] | None = None) -> None:
        self._app = app
        self._access = access
        self._open_paths = open_paths

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request; the server calls it."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        is_open = self._open_paths is not None and self._open_paths.fullmatch(scope["path"]) is not None

        async def send_secured(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _SECURITY_HEADERS.items():
                    if not (is_open and name in headers):
                        headers[name] = value
            await send(message)

        headers = Headers(scope=scope)
        if refusal := self._refusal(headers, is_open=is_open):
            status, detail = refusal
            wanted = _WITH_REFUSAL.get(status)
            await problem_response(status, detail, wanted)(scope, receive, send_secured)
            return
        await self._app(scope, receive, send_secured)

    def _refusal(self, headers: Headers, *, is_open: bool) -> tuple[int, str] | None:
        if "transfer-encoding" in headers and "content-length" in headers:  # a proxy may have taken the other one
            return 400, "the request has both Content-Length and Transfer-Encoding; send one of them"
        host, origin = headers.get("host", ""), headers.get("origin")
        if len(headers.getlist("host")) != 1 or not self._access.serves(host):
            return 403, "the Host header does not name this tracker; `--host NAME` adds a name"
        own = f"http://{host.lower()}", f"https://{host.lower()}"
        foreign = not is_open and headers.get("sec-fetch-site", "none") in _FOREIGN  # a link to a page is no harm
        if foreign or (origin is not None and origin.lower() not in own):
            return 403, "the request comes from a page of another site"
        if self._access.token and not is_open and not self._access.admits(headers.get("authorization", "")):
            return 401, "send the token of the tracker: `Authorization: Bearer TOKEN`"
        return None
