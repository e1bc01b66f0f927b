"""What servers answer, in the words of who submits a topology."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import httpx

from heron.driver_kit.packages import InterruptedTransferError
from heron.errors import PackageError

__all__ = ["checked", "translated"]

_SPACE = "remove packages with `heron packages prune`, or have the limit raised"
_REMEDIES = {
    401: "see uploader.username and uploader.password, uploader.token, or ~/.netrc",
    403: "allow this user GET, HEAD, PUT and DELETE there",
    404: "make the folder, or see uploader.url",
    405: "the server has to allow this method there (WebDAV)",
    407: "see the proxy that HTTPS_PROXY or HTTP_PROXY names",
    409: "make the folder, or see uploader.url",
    413: _SPACE,
    429: "too much is asked of the server; try again later",
    500: "see what the server's log says: its disk may be full",
    501: "the server has to allow this method there (WebDAV)",
    503: "try again later",
    507: _SPACE,
}


def checked(response: httpx.Response) -> httpx.Response:
    """The response, when it is a success.

    Raises:
        PackageError: when it is not.
    """
    if response.is_success:
        return response
    request = response.request
    code = response.status_code
    remedy = _REMEDIES.get(code, "see what the server's log says")
    if response.has_redirect_location:
        remedy = f"it points to {response.headers['location']!r:.200}; put the right address into uploader.url"
    msg = f"{request.url}: {request.method} is refused: {code} {response.reason_phrase}; {remedy}"
    raise PackageError(msg)


@contextmanager
def translated(url: str) -> Iterator[None]:
    """Turns errors of httpx into InterruptedTransferErrors that name the folder."""
    try:
        yield
    except httpx.TransportError as error:
        reason = str(error) or type(error).__name__
        msg = f"{url} does not answer: {reason}; is the server running, and is uploader.url right?"
        raise InterruptedTransferError(msg) from error
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        msg = f"{url} cannot be asked: {error}; see uploader.url"
        raise PackageError(msg) from error
