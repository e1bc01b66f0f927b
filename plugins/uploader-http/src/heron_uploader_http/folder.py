"""A folder of an HTTP server: PUT, HEAD, GET, DELETE, and WebDAV's PROPFIND where the server has it."""

from __future__ import annotations

import netrc
import ssl
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx

from heron.driver_kit.packages import CHUNK_BYTES
from heron.errors import ConfigError, PackageError
from heron_uploader_http.http_errors import checked, translated
from heron_uploader_http.multistatus import Member, members
from heron_uploader_http.options import HttpOptions

__all__ = ["Folder", "StoredFile"]

_CONNECT_S = 5.0
_READ_S = 12.0  # twice, when a download goes on, stays within the contract's 30 s
_STORED_S = 25.0  # the answer to a PUT comes when all is on the server's disk
_MISSING = {404, 410}
_NO_FOLDER = {404, 409, 500}  # what servers say of a PUT below a folder that is not there
_NO_LISTING = {404, 405, 501}


@dataclass(frozen=True, slots=True)
class StoredFile:
    """A file of the folder; the tag is the server's, "" where it gives none."""

    size_bytes: int
    tag: str


class Folder:
    """Every call raises PackageError when the server refuses, InterruptedTransferError when it does not answer."""

    def __init__(self, options: HttpOptions) -> None:
        """Connects with the first call."""
        self.url = options.url.rstrip("/")
        self._client = httpx.Client(
            auth=_auth(options),
            headers={"Accept-Encoding": "identity", "User-Agent": "heron"},
            # Uploaders are never closed, so a connection ends with its answer.
            limits=httpx.Limits(max_keepalive_connections=0),
            timeout=httpx.Timeout(_READ_S, connect=_CONNECT_S),
            verify=_context(options.ca_file),
        )

    def find(self, file: str, timeout_s: float = _READ_S) -> StoredFile | None:
        """The file of that name."""
        with translated(self.url):
            response = self._client.head(
                self.url_of(file), follow_redirects=True, timeout=httpx.Timeout(timeout_s, connect=timeout_s / 2)
            )
        if response.status_code in _MISSING:
            return None
        headers = checked(response).headers
        return StoredFile(int(headers.get("content-length", 0)), headers.get("etag", ""))

    def put(self, file: str, content: Iterable[bytes], size_bytes: int, *, only_new: bool) -> bool:
        """Stores a file; False when it is there already, only `only_new` is true and the server heeds that."""
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
            msg = f"{self.url}: there is no such folder; make it, or see uploader.url"
            raise PackageError(msg)
        checked(response)
        return True

    def delete(self, file: str) -> None:
        """Removes a file; one that is not there is no error."""
        with translated(self.url):
            response = self._client.delete(self.url_of(file))
        if response.status_code not in _MISSING:
            checked(response)

    def read(self, file: str, offset: int, tag: str) -> Iterator[bytes]:
        """The content from the offset on."""
        behind = {"Range": f"bytes={offset}-"} if offset else {}
        if offset and tag and not tag.startswith("W/"):
            behind["If-Range"] = tag
        with self._streamed(self.url_of(file), behind) as response:
            skipped = 0 if response.status_code == httpx.codes.PARTIAL_CONTENT else offset
            for chunk in response.iter_raw(CHUNK_BYTES):
                rest = chunk[skipped:]
                skipped -= len(chunk) - len(rest)
                if rest:
                    yield rest

    def members(self) -> tuple[Member, ...]:
        """The files of the folder.

        Raises:
            PackageError: also when the server has no PROPFIND.
        """
        with translated(self.url):
            response = self._client.request("PROPFIND", f"{self.url}/", headers={"Depth": "1"})
        if response.status_code in _NO_LISTING:
            msg = f"{self.url}: the server lists no folders (PROPFIND of WebDAV, {response.status_code}); look there"
            raise PackageError(msg)
        return members(checked(response).content, response.headers.get("date", ""), self.url)

    def url_of(self, file: str) -> str:
        """The address of a file of the folder."""
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
        msg = f"uploader: ~/.netrc cannot be read: {error}; mend it, or set uploader.username and uploader.password"
        raise ConfigError(msg) from error


class _Bearer(httpx.Auth):
    """Sends a token; like httpx's own kinds, not to another host that a redirect leads to."""

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
