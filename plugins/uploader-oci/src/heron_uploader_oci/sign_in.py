"""Answers a registry that asks for credentials: Basic, or Bearer with a token from the server that it names."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import httpx
import msgspec

from heron.errors import PackageError
from heron.spi.typed_values import decode_json
from heron_uploader_oci.credentials import Credentials

__all__ = ["Challenge", "Grant", "challenges", "sign_in"]

_SCHEME = re.compile(r"(?:^|,)\s*(Basic|Bearer)(?:\s+|$)", re.IGNORECASE)
_PARAMETER = re.compile(r'(\w+)=(?:"([^"]*)"|([^\s,]*))')
_CLIENT = "heron"


@dataclass(frozen=True, slots=True)
class Challenge:
    """What a registry asks for: ``basic`` or ``bearer``, and the parameters."""

    scheme: str
    parameters: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Grant:
    """The header Authorization for the next requests, and who sends them, for messages ("": without credentials)."""

    header: str = field(default="", repr=False)
    user: str = ""


class _Token(msgspec.Struct, frozen=True):
    token: str = ""
    access_token: str = ""


def challenges(headers: Sequence[str]) -> tuple[Challenge, ...]:
    """Parse the headers WWW-Authenticate; schemes other than Basic and Bearer are left out."""
    found = []
    for header in headers:
        pieces = _SCHEME.split(header)[1:]
        for scheme, text in zip(pieces[::2], pieces[1::2], strict=True):
            values = {
                each[1].lower(): each[2] if each[2] is not None else each[3] for each in _PARAMETER.finditer(text)
            }
            found.append(Challenge(scheme.lower(), values))
    return tuple(found)


def sign_in(
    client: httpx.Client,
    send: Callable[[httpx.Request], httpx.Response],
    response: httpx.Response,
    credentials: Credentials | None,
) -> Grant | None:
    """Return what answers a response 401; None if nothing can. `send` sends a request to the token server.

    Raises:
        PackageError: when the token server refuses, or it is not safe to send it credentials.
        httpx.HTTPError: when it does not answer.
    """
    asked = {each.scheme: each for each in challenges(response.headers.get_list("www-authenticate"))}
    user = f"user {credentials.username!r} of {credentials.source}" if credentials else ""
    if credentials and credentials.identity_token:
        user = f"the identity token of {credentials.source}"
    if bearer := asked.get("bearer"):
        request = _token_request(client, response.request.url, bearer, credentials)
        return Grant(f"Bearer {_token(send(request), response.request.url, user)}", user)
    if "basic" in asked and credentials and not credentials.identity_token:
        return Grant(credentials.basic, user)
    return None


def _token_request(
    client: httpx.Client, registry: httpx.URL, challenge: Challenge, credentials: Credentials | None
) -> httpx.Request:
    try:
        realm = httpx.URL(challenge.parameters.get("realm", ""))
    except httpx.InvalidURL:
        realm = httpx.URL("")
    if realm.scheme != "https" and (realm.scheme, registry.scheme) != ("http", "http"):
        msg = f"{registry.host}: its token server {str(realm)!r:.200} is not https; nothing was sent, do not use it"
        raise PackageError(msg)
    asked = {"service": challenge.parameters["service"]} if "service" in challenge.parameters else {}
    scopes = challenge.parameters.get("scope", "")
    if credentials and credentials.identity_token:
        form = {"grant_type": "refresh_token", "client_id": _CLIENT, "refresh_token": credentials.identity_token}
        return client.build_request("POST", realm, data={**asked, **form, "scope": scopes})
    query = httpx.QueryParams(
        [*realm.params.multi_items(), *asked.items(), *(("scope", each) for each in scopes.split())]
    )
    headers = {"Authorization": credentials.basic} if credentials else {}
    return client.build_request("GET", realm.copy_with(params=query), headers=headers)


def _token(response: httpx.Response, registry: httpx.URL, user: str) -> str:
    realm = response.request.url
    if not response.is_success:
        who = user or "a request without credentials"
        msg = (
            f"token server {realm.host}: refuses {who}: {response.status_code} {response.reason_phrase}; "
            f"sign in with `docker login {registry.netloc.decode()}`, or set uploader.username and uploader.password"
        )
        raise PackageError(msg)
    try:
        found = decode_json(response.content, _Token)
    except msgspec.MsgspecError:
        found = _Token()
    if not (token := found.token or found.access_token):
        msg = f"token server {realm.host}: its answer has no token; read its log"
        raise PackageError(msg)
    return token
