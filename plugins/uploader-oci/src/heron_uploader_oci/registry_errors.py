"""Turns refusals of a registry and errors of httpx into errors with a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import msgspec

from heron.errors import PackageError
from heron.spi.typed_values import decode_json
from heron_driver_kit.packages import InterruptedTransferError

__all__ = ["LOG", "check_encrypted", "lacks_blob", "refusal", "shown", "translated"]

LOG = "read the registry's log"
"""The remedy for an answer that no registry should give."""
_CLIENT_ERRORS = {400, 401, 403, 404, 405}
_STORAGE = "compare the clocks of the registry and its storage, and check the registry's keys for it"
_DELETE = "allow deletion in the registry (distribution: storage.delete.enabled), or set uploader.delete: false"
_REMEDIES = {
    400: LOG,
    404: "check uploader.repository; some registries want a repository to be created first",
    405: _DELETE,
    407: "check the user and password of the proxy in HTTPS_PROXY or HTTP_PROXY",
    413: "raise the registry's limit, or leave large files out",
    415: "use a registry that stores OCI artifacts",
    503: "try again later",
}
_RIGHTS = {"GET": "read (pull)", "HEAD": "read (pull)", "DELETE": "delete"}
_BLOB_UNKNOWN = "MANIFEST_BLOB_UNKNOWN"
_ERROR_BYTES = 64 * 1024


class _Error(msgspec.Struct, frozen=True):
    code: str = ""
    message: str = ""


class _Errors(msgspec.Struct, frozen=True):
    errors: tuple[_Error, ...] = ()


def shown(url: httpx.URL) -> str:
    """Return a URL for a message: without its query, which is the credential of a storage that signs its URLs."""
    return str(url.copy_with(userinfo=b"", query=None, fragment=None))


def refusal(
    response: httpx.Response, repository: str, user: str, retry_s: float | None, limit_s: float, *, own: bool
) -> PackageError:
    """Return the error for a response that is not a success.

    `user` says who asked and where the credentials come from, "" without credentials. `retry_s` is the time that the
    registry asks to wait, and `limit_s` the time that the driver waits in all. `own` says that the registry answers,
    not a storage that it redirects to.
    """
    request, code = response.request, response.status_code
    host = request.url.netloc.decode()
    right = _RIGHTS.get(request.method, "store (push)")
    if not own and code in _CLIENT_ERRORS:
        remedy = f"the storage that the registry redirects to refuses; {_STORAGE}"
    elif code == httpx.codes.UNAUTHORIZED:
        remedy = (
            f"the registry refuses {user}, or it may not {right} in {repository}; sign in again, or give it this right"
            if user
            else f"it wants credentials: `docker login {host}`, or set uploader.username and uploader.password"
        )
    elif code == httpx.codes.FORBIDDEN:
        remedy = f"{user or 'a request without credentials'} may not {right} in {repository}; give it this right there"
    elif code == httpx.codes.TOO_MANY_REQUESTS:
        asked = f"asks to wait {retry_s:g} s" if retry_s is not None else "names no time to wait"
        remedy = f"it receives too many requests and {asked}, the limit here is {limit_s:g} s; try again later"
    elif response.has_redirect_location:
        place = shown(_location(response))
        remedy = f"it redirects to {place!r:.200}; set uploader.repository to the final address"
    else:
        remedy = _REMEDIES.get(code, LOG)
    said = _said(response)
    return PackageError(
        f"{shown(request.url)}: {request.method} is refused: {code} {response.reason_phrase}{said}; {remedy}"
    )


def check_encrypted(response: httpx.Response) -> None:
    """Refuse an answer over https that names a location without it: a package goes nowhere in clear by surprise.

    Raises:
        PackageError: when it does.
    """
    place = _location(response)
    if response.request.url.scheme == "https" and place.scheme != "https":
        msg = (
            f"{shown(response.request.url)}: names {shown(place)!r:.200}, which is not https; nothing was sent there, "
            "correct the registry's own address (distribution: http.host; a proxy: X-Forwarded-Proto)"
        )
        raise PackageError(msg)


def lacks_blob(response: httpx.Response) -> bool:
    """Return whether the registry refuses a manifest because it does not see one of its blobs."""
    return not response.is_success and any(each.code == _BLOB_UNKNOWN for each in _errors(response))


def _location(response: httpx.Response) -> httpx.URL:
    try:
        return response.request.url.join(response.headers.get("location", ""))
    except httpx.InvalidURL:
        return httpx.URL("")


def _said(response: httpx.Response) -> str:
    """Return what the registry says about the error."""
    texts = [" ".join(f"{each.code} {each.message}".split()) for each in _errors(response)[:3]]
    return f" ({'; '.join(texts)!s:.300})" if texts else ""


def _errors(response: httpx.Response) -> tuple[_Error, ...]:
    try:
        return decode_json(response.content[:_ERROR_BYTES], _Errors).errors
    except msgspec.MsgspecError:
        return ()


@contextmanager
def translated(host: str) -> Iterator[None]:
    """Turn errors of httpx into errors that name the registry."""
    try:
        yield
    except httpx.TransportError as error:
        reason = str(error) or type(error).__name__
        msg = (
            f"registry {host} does not answer: {reason}; check that it is running, that uploader.repository is "
            "correct, and whether it speaks http (uploader.plain_http)"
        )
        raise InterruptedTransferError(msg) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        msg = f"registry {host}: the request failed: {error}; check uploader.repository"
        raise PackageError(msg) from error
