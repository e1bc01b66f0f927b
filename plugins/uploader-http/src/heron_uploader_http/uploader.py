"""Stores packages as files of a web folder, named by their content.

Some servers keep the first part of an interrupted PUT, and some ignore the condition that a file must be new. So an
upload reads and compares an existing file before it relies on it, and every download compares the SHA-256.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Self

from heron.errors import PackageError
from heron.spi.options import decode_options
from heron.spi.uploader import PackageEntry, Uploader
from heron_driver_kit.packages import CHUNK_BYTES, LocalPackage, PackageName, chunks_of, receive, sha256_of
from heron_uploader_http.folder import Folder, HttpOptions

__all__ = ["HttpUploader"]


class HttpUploader(Uploader):
    """Packages in a folder of a web server, for containers on every machine that can reach the server."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"listing", "server", "shared"})
    options_type: ClassVar[type] = HttpOptions

    def __init__(self, options: HttpOptions) -> None:
        self._folder = Folder(options)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Create the driver. The first call connects."""
        return cls(decode_options(options, HttpOptions, "uploader"))

    def check(self, timeout_s: float) -> str:
        """Ask for a file that does not exist. Every answer except a refusal is a success."""
        self._folder.find(PackageName("check", "0" * 64).file, timeout_s)
        return f"{self._folder.url} answers"

    def upload(self, package: Path, name: str) -> str:
        """Put the file, unless the server has it with the same content."""
        PackageName(name, "")  # refuses an invalid name before the file is read
        local = LocalPackage.read(package, CHUNK_BYTES)
        file = PackageName(name, local.digest).file
        exists = self._folder.find(file) is not None
        if not (exists and self._is_whole(file, local)):
            stored = self._folder.put(file, self._outgoing(local), local.size_bytes, only_new=not exists)
            if not stored and not self._is_whole(file, local):  # another upload left an incomplete file since `find`
                self._folder.put(file, self._outgoing(local), local.size_bytes, only_new=False)
            self._confirm(file)
        self._moved(local.size_bytes, local.size_bytes)
        return self._folder.url_of(file)

    def undo(self, uri: str) -> None:
        self._folder.delete(self._stored(uri).file)

    def download(self, uri: str, target: Path) -> None:
        """Get the file, and continue after a broken connection."""
        stored = self._stored(uri)
        found = self._folder.find(stored.file)
        if found is None:
            msg = f"package {uri}: not found; it was removed, submit the topology again"
            raise PackageError(msg)
        receive(
            lambda offset: self._folder.read(stored.file, offset, found.tag),
            target,
            stored.digest,
            f"package {uri}",
            self._moved,
            found.size_bytes,
        )

    def packages(self) -> tuple[PackageEntry, ...]:
        """List the folder with PROPFIND of WebDAV."""
        named = ((each, PackageName.of_file(each.file)) for each in self._folder.members())
        return tuple(
            PackageEntry(self._folder.url_of(each.file), stored.name, each.size_bytes, each.age_s)
            for each, stored in named
            if stored
        )

    def _outgoing(self, package: LocalPackage) -> Iterator[bytes]:
        """Yield the content, and fail before its last chunk when the file has changed, so that the PUT fails too."""
        digest, sent = hashlib.sha256(), 0
        for chunk in chunks_of(package.path):
            digest.update(chunk)
            sent += len(chunk)
            if sent >= package.size_bytes and digest.hexdigest() != package.digest:
                msg = f"package {package.path}: changed while it was uploaded; build it again"
                raise PackageError(msg)
            yield chunk
            self._moved(sent, package.size_bytes)

    def _confirm(self, file: str) -> None:
        """Check that a stored file exists: a server that stores nothing may confirm every PUT."""
        if self._folder.find(file) is None:
            msg = (
                f"{self._folder.url_of(file)}: the server confirmed the package but does not have it; "
                "check that uploader.url is a folder that keeps files, without a cache in front"
            )
            raise PackageError(msg)

    def _is_whole(self, file: str, package: LocalPackage) -> bool:
        found = self._folder.find(file)
        if found is None or found.size_bytes != package.size_bytes:
            return False
        return sha256_of(self._folder.read(file, 0, found.tag)) == package.digest

    def _stored(self, uri: str) -> PackageName:
        """Parse a URI."""
        stored = PackageName.of_file(uri.rpartition("/")[2])
        if stored is None or uri != self._folder.url_of(stored.file):
            msg = (
                f"package URI {uri!r:.300} is not of the form URL/NAME-SHA256.tar.gz, or leads out of uploader.url "
                f"{self._folder.url!r}; use the profile that it was uploaded with"
            )
            raise PackageError(msg)
        return stored
