"""Turns refusals of the server and errors of httpx into errors with a remedy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from heron.errors import PackageError
from heron_driver_kit.packages import InterruptedTransferError

__all__ = ["checked", "translated"]

_SPACE = "remove packages with `heron packages prune`, or raise the server's limit"
_METHOD = "allow this method there (WebDAV)"
_NO_FOLDER = "create the folder, or correct uploader.url"
_LOG = "read the server's log"
_REMEDIES = {
    401: "check uploader.username and uploader.password, uploader.token, or ~/.netrc",
    403: "allow this user GET, HEAD, PUT and DELETE there",
    404: _NO_FOLDER,
    405: _METHOD,
    407: "check the user and password of the proxy in HTTPS_PROXY or HTTP_PROXY",
    409: _NO_FOLDER,
    413: _SPACE,
    429: "the server receives too many requests; try again later",
    500: f"{_LOG}; its disk may be full",
    501: _METHOD,
    503: "try again later",
    507: _SPACE,
}


def checked(response: httpx.Response) -> httpx.Response:
    """Return a successful response.

    Raises:
        PackageError: when the server refused the request, or redirects it.
    """
    if response.is_success:
        return response
    request = response.request
    code = response.status_code
    remedy = _REMEDIES.get(code, _LOG)
    if response.has_redirect_location:
        location = response.headers["location"]
        remedy = f"the server redirects to {location!r:.200}; set uploader.url to the final address"
    msg = f"{request.url}: {request.method} is refused: {code} {response.reason_phrase}; {remedy}"
    raise PackageError(msg)


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Turn errors of httpx into errors that name the folder `url`."""
    try:
        yield
    except httpx.TransportError as error:
        reason = str(error) or type(error).__name__
        msg = f"{url} does not answer: {reason}; check that the server is running and that uploader.url is correct"
        raise InterruptedTransferError(msg) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        msg = f"{url}: the request failed: {error}; check uploader.url"
        raise PackageError(msg) from error
