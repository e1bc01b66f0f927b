"""A folder of an HTTP server, used with PUT, HEAD, GET, DELETE and, for lists, PROPFIND of WebDAV."""

from __future__ import annotations

import netrc
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated
from urllib.parse import urlsplit

import httpx
import msgspec

from heron.errors import ConfigError, PackageError
from heron.spi.options import Secret
from heron_driver_kit.packages import CHUNK_BYTES
from heron_uploader_http.http_errors import checked, translated
from heron_uploader_http.multistatus import Member, members

__all__ = ["Folder", "HttpOptions", "StoredFile"]

_CONNECT_S = 5.0
_READ_S = 12.0  # a download that continues waits twice, within the contract's 30 s
_STORED_S = 25.0  # a server answers a PUT when the file is on its disk
_MISSING = {404, 410}
_NO_FOLDER = {404, 409, 500}  # answers of servers to a PUT into a folder that does not exist
_NO_LISTING = {404, 405, 501}


class HttpOptions(msgspec.Struct, frozen=True):
    """The driver's section of a profile. Without username and token, ``~/.netrc`` is read."""

    url: Annotated[str, msgspec.Meta(pattern=r"^https?://[^/?#]+")]
    username: str = ""
    password: Secret = ""
    token: Secret = ""
    ca_file: str = ""

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if "@" in parts.netloc:
            msg = "url contains a user or password, which URLs of packages would show; use username and password"
            raise ValueError(msg)
        if parts.query or parts.fragment:
            msg = "url ends with a query or fragment; give the address of a folder"
            raise ValueError(msg)
        if bool(self.username) != bool(self.password):
            msg = "username and password belong together; give both or neither"
            raise ValueError(msg)
        if self.token and self.username:
            msg = "a token and a username are two ways to sign in; give one"
            raise ValueError(msg)


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the folder."""

    size_bytes: int
    tag: str
    """The server's entity tag; "" if the server sends none."""


class Folder:
    """Every call raises PackageError when the server refuses, InterruptedTransferError when it does not answer."""

    def __init__(self, options: HttpOptions) -> None:
        """Create the client. The first call connects."""
        self.url = options.url.rstrip("/")
        self._client = httpx.Client(
            auth=_auth(options),
            headers={"Accept-Encoding": "identity", "User-Agent": "heron"},
            # Nothing closes an uploader, so each connection closes after its answer.
            limits=httpx.Limits(max_keepalive_connections=0),
            timeout=httpx.Timeout(_READ_S, connect=_CONNECT_S),
            verify=_context(options.ca_file),
        )

    def find(self, file: str, timeout_s: float = _READ_S) -> StoredFile | None:
        """Ask for a file; None when it does not exist."""
        with translated(self.url):
            response = self._client.head(
                self.url_of(file), follow_redirects=True, timeout=httpx.Timeout(timeout_s, connect=timeout_s / 2)
            )
        if response.status_code in _MISSING:
            return None
        headers = checked(response).headers
        return StoredFile(int(headers.get("content-length", 0)), headers.get("etag", ""))

    def put(self, file: str, content: Iterable[bytes], size_bytes: int, *, only_new: bool) -> bool:
        """Store a file, by default over an existing one.

        With `only_new`, the call returns False when the file exists. A server may ignore this condition and replace
        the file; the call then returns True.
        """
        condition = {"If-None-Match": "*"} if only_new else {}
        with translated(self.url):
            response = self._client.put(
                self.url_of(file),
                content=content,
                headers={"Content-Length": str(size_bytes), **condition},
                timeout=httpx.Timeout(_READ_S, connect=_CONNECT_S, read=_STORED_S),
            )
        if only_new and response.status_code == httpx.codes.PRECONDITION_FAILED:
            return False
        if response.status_code in _NO_FOLDER and self._is_missing():
            msg = f"{self.url}: the folder does not exist; create it, or correct uploader.url"
            raise PackageError(msg)
        checked(response)
        return True

    def delete(self, file: str) -> None:
        """Remove a file; a missing file is not an error."""
        with translated(self.url):
            response = self._client.delete(self.url_of(file))
        if response.status_code not in _MISSING:
            checked(response)

    def read(self, file: str, offset: int, tag: str) -> Iterator[bytes]:
        """Yield the content from the offset on."""
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        if offset and tag and not tag.startswith("W/"):
            headers["If-Range"] = tag
        with self._streamed(self.url_of(file), headers) as response:
            skipped = 0 if response.status_code == httpx.codes.PARTIAL_CONTENT else offset
            for chunk in response.iter_raw(CHUNK_BYTES):
                rest = chunk[skipped:]
                skipped -= len(chunk) - len(rest)
                if rest:
                    yield rest

    def members(self) -> tuple[Member, ...]:
        """List the files of the folder.

        Raises:
            PackageError: also when the server does not support PROPFIND.
        """
        with translated(self.url):
            response = self._client.request("PROPFIND", f"{self.url}/", headers={"Depth": "1"})
        if response.status_code in _NO_LISTING:
            msg = (
                f"{self.url}: the server cannot list a folder: it answers {response.status_code} to PROPFIND; "
                "enable WebDAV there, or look into the folder on the server"
            )
            raise PackageError(msg)
        return members(checked(response).content, response.headers.get("date", ""), self.url)

    def url_of(self, file: str) -> str:
        return f"{self.url}/{file}"

    def _is_missing(self) -> bool:
        with translated(self.url):
            return self._client.head(f"{self.url}/", follow_redirects=True).status_code in _MISSING

    @contextmanager
    def _streamed(self, url: str, headers: dict[str, str]) -> Iterator[httpx.Response]:
        with (
            translated(self.url),
            self._client.stream("GET", url, headers=headers, follow_redirects=True) as response,
        ):
            yield checked(response)


def _auth(options: HttpOptions) -> httpx.Auth | None:
    if options.token:
        return _Bearer(options.token)
    if options.username:
        return httpx.BasicAuth(options.username, options.password)
    try:
        return httpx.NetRCAuth()
    except FileNotFoundError:
        return None
    except (OSError, netrc.NetrcParseError) as error:
        msg = f"uploader: ~/.netrc cannot be read: {error}; correct it, or set uploader.username and uploader.password"
        raise ConfigError(msg) from error


class _Bearer(httpx.Auth):
    """Sends a token. Like the classes of httpx, it sends nothing to another host after a redirect."""

    def __init__(self, token: str) -> None:
        self._header = f"Bearer {token}"

    def auth_flow(self, request: httpx.Request) -> Iterator[httpx.Request]:  # type: ignore[override]
        request.headers["Authorization"] = self._header
        yield request


def _context(ca_file: str) -> ssl.SSLContext | bool:
    if not ca_file:
        return True
    path = Path(ca_file).expanduser()
    try:
        return ssl.create_default_context(cafile=path)
    except OSError as error:
        msg = f"uploader.ca_file: {path} cannot be used: {error}; give a file of certificates (PEM)"
        raise ConfigError(msg) from error
