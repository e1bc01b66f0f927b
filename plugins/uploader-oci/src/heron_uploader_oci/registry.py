"""One repository of an OCI registry, by the distribution interface (``/v2/``).

A request that is answered with 401 is repeated once with credentials. A request that is answered with 429 or 503 and a
short Retry-After is repeated after that time, at most three times. So is a manifest whose blobs the registry does not
see yet: distribution loses sight of a blob for a moment while another command stores the same one. All other refusals
are errors at once.
"""

from __future__ import annotations

import hashlib
import ssl
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from types import TracebackType
from typing import Self

import httpx
import msgspec

from heron.clock import monotonic_s, wall_s
from heron.errors import PackageError
from heron.spi.typed_values import decode_json
from heron_driver_kit.packages import CHUNK_BYTES
from heron_uploader_oci.oci_options import OciOptions
from heron_uploader_oci.registry_errors import LOG, check_encrypted, lacks_blob, refusal, shown, translated
from heron_uploader_oci.registry_transport import (
    ALL_S,
    WAIT_S,
    RegistryRequest,
    RegistryTransport,
    are_of_one_server,
    retry_after_s,
)

__all__ = ["MANIFEST_BYTES", "MANIFEST_TYPE", "Registry", "StoredManifest"]

MANIFEST_TYPE = "application/vnd.oci.image.manifest.v1+json"
MANIFEST_BYTES = 4 << 20
"""The largest manifest that registries take, in bytes."""

_STORED_S = 20.0  # a registry answers the end of an upload when the blob is on its disk
_BLOB_PAUSES_S = (0.1, 0.4, 1.6)
_PAGE = 1000
_PAGES = 1000
_MISSING = httpx.codes.NOT_FOUND


@dataclass(frozen=True, slots=True)
class StoredManifest:
    """A manifest of the repository."""

    data: bytes
    digest: str
    """``sha256:`` and the SHA-256 of `data`, hexadecimal."""

    @classmethod
    def of(cls, data: bytes) -> StoredManifest:
        """Compute the digest."""
        return cls(data, f"sha256:{hashlib.sha256(data).hexdigest()}")


class _Tags(msgspec.Struct, frozen=True):
    tags: tuple[str, ...] | None = None


class Registry:
    """A context manager: connections stay open within it.

    Every call raises PackageError when the registry refuses, InterruptedTransferError when it does not answer.
    """

    def __init__(
        self,
        options: OciOptions,
        context: ssl.SSLContext,
        pause: Callable[[float], object] | None = None,
        timeout_s: float | None = None,
    ) -> None:
        """Create the client; the first call connects. With `timeout_s`, all calls together end in that time."""
        self._options = options
        self._base = httpx.URL(options.url)
        self._transport = RegistryTransport(options, context, pause, timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._transport.close()

    @property
    def user(self) -> str:
        """Who the registry has been asked as, and where the credentials come from; "" without credentials."""
        return self._transport.grant.user

    def now_s(self) -> float:
        """Return the time of the registry's last answer by its own clock, in seconds since 1970."""
        try:
            return parsedate_to_datetime(self._transport.date).timestamp()
        except ValueError:  # it has told none
            return wall_s()

    def ping(self) -> None:
        """Ask whether this is a registry, and sign in."""
        self._checked(self._transport.send(RegistryRequest("GET", self._base)))

    def tags(self) -> tuple[str, ...]:
        """Return all tags, from all pages; none when the repository does not exist."""
        found: list[str] = []
        url: httpx.URL | None = self._url("tags/list").copy_merge_params({"n": _PAGE})
        seen: set[httpx.URL] = set()
        while url is not None:
            seen.add(url)
            response = self._transport.send(RegistryRequest("GET", url))
            if response.status_code == _MISSING and len(seen) == 1:
                return ()
            try:
                found += decode_json(self._checked(response).content, _Tags).tags or ()
            except msgspec.MsgspecError as error:
                msg = f"{shown(url)}: the answer is not a list of tags: {error}; check uploader.repository"
                raise PackageError(msg) from error
            with translated(self._options.host):
                url = _next_page(response, seen)
        return tuple(found)

    def manifest(self, reference: str) -> StoredManifest | None:
        """Return the manifest of a tag or digest; None when it does not exist."""
        request = RegistryRequest("GET", self._url(f"manifests/{reference}"), {"Accept": MANIFEST_TYPE})
        response = self._transport.send(request, follow=True)
        if response.status_code == _MISSING:
            return None
        data = self._checked(response).content
        if len(data) > MANIFEST_BYTES:
            what = f"{shown(request.url)}: the manifest"
            msg = f"{what} is larger than the limit of {MANIFEST_BYTES} bytes; do not use it"
            raise PackageError(msg)
        return StoredManifest.of(data)

    def digest_of(self, tag: str) -> str:
        """Return the digest of the manifest that a tag means; "" when there is none."""
        response = self._transport.send(
            RegistryRequest("HEAD", self._url(f"manifests/{tag}"), {"Accept": MANIFEST_TYPE})
        )
        if response.status_code == _MISSING:
            return ""
        if digest := self._checked(response).headers.get("docker-content-digest", ""):
            return str(digest)
        found = self.manifest(tag)
        return found.digest if found else ""

    def put_manifest(self, reference: str, data: bytes) -> None:
        """Store a manifest under a tag, which moves at once."""
        request = RegistryRequest(
            "PUT", self._url(f"manifests/{reference}"), {"Content-Type": MANIFEST_TYPE}, data, _STORED_S
        )
        last_s = monotonic_s() + ALL_S - request.read_s
        for pause_s in (*_BLOB_PAUSES_S, None):
            response = self._transport.send(request)
            if pause_s is None or monotonic_s() + pause_s > last_s or not lacks_blob(response):
                self._checked(response)
                return
            self._transport.pause(pause_s)

    def delete_manifest(self, digest: str) -> None:
        """Remove a manifest with all its tags; a missing manifest is not an error."""
        response = self._transport.send(RegistryRequest("DELETE", self._url(f"manifests/{digest}")))
        if response.status_code != _MISSING:
            self._checked(response)

    def blob_fits(self, digest: str, size_bytes: int) -> bool | None:
        """Return whether a blob has this size, as far as the registry tells it; None when it does not exist."""
        response = self._transport.send(RegistryRequest("HEAD", self._url(f"blobs/{digest}")), follow=True)
        if response.status_code == _MISSING:
            return None
        told = str(self._checked(response).headers.get("content-length", size_bytes))
        return told == str(size_bytes)

    def put_blob(self, digest: str, size_bytes: int, content: Callable[[], Iterable[bytes]] | bytes) -> None:
        """Store a blob; the registry checks its digest."""
        started = self._checked(self._transport.send(RegistryRequest("POST", self._url("blobs/uploads/"))))
        url = self._location(started).copy_merge_params({"digest": digest})
        headers = {"Content-Type": "application/octet-stream", "Content-Length": str(size_bytes)}
        self._checked(self._transport.send(RegistryRequest("PUT", url, headers, content, _STORED_S)))

    def read_blob(self, digest: str, offset: int = 0) -> Iterator[bytes]:
        """Yield the content of a blob from an offset on, without a check of its digest."""
        headers = {"Range": f"bytes={offset}-"} if offset else {}
        request = RegistryRequest("GET", self._url(f"blobs/{digest}"), headers)
        with self._streamed(request) as response:
            skipped = 0 if response.status_code == httpx.codes.PARTIAL_CONTENT else offset
            for chunk in response.iter_raw(CHUNK_BYTES):
                rest = chunk[skipped:]
                skipped -= len(chunk) - len(rest)
                if rest:
                    yield rest

    def may_store(self) -> bool:
        """Ask whether this user may store; begins an upload and cancels it."""
        response = self._transport.send(RegistryRequest("POST", self._url("blobs/uploads/")))
        if response.status_code in {httpx.codes.UNAUTHORIZED, httpx.codes.FORBIDDEN}:
            return False
        self._transport.send(
            RegistryRequest("DELETE", self._location(self._checked(response)))
        )  # without it, the registry expires it
        return True

    def _url(self, path: str) -> httpx.URL:
        return self._base.join(f"{self._options.path}/{path}")

    def _location(self, response: httpx.Response) -> httpx.URL:
        with translated(self._options.host):
            check_encrypted(response)
            return response.request.url.join(response.headers.get("location", ""))

    @contextmanager
    def _streamed(self, request: RegistryRequest) -> Iterator[httpx.Response]:
        response = self._transport.send(request, follow=True, stream=True)
        try:
            with translated(self._options.host):
                yield self._checked(response)
        finally:
            response.close()

    def _checked(self, response: httpx.Response) -> httpx.Response:
        if response.is_success:
            return response
        own = are_of_one_server(response.request.url, self._base)
        raise refusal(response, self._options.repository, self.user, retry_after_s(response), WAIT_S, own=own)


def _next_page(response: httpx.Response, seen: Collection[httpx.URL]) -> httpx.URL | None:
    """Return where a list continues. A part of it would let a tagged package look like one without tags."""
    following = response.links.get("next", {}).get("url", "")
    if not following:
        return None
    here = response.request.url
    url = here.join(following)
    why = ""
    if not are_of_one_server(url, here):
        why = f"continues at another server, {shown(url)}"
    elif url in seen:
        why = "continues with a page that it had already"
    elif len(seen) >= _PAGES:
        why = f"has more than the limit of {_PAGES} pages"
    if why:
        msg = f"{shown(here)}: the list of tags {why}; {LOG}"
        raise PackageError(msg)
    return url
