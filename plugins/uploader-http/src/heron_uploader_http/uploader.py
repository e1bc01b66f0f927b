"""Stores packages as files of a web folder, named by their content.

Servers differ in how they treat a PUT that breaks off, and only some heed that a file must be new. So what is there
already is read and compared before it is taken for the package, and every download compares the SHA-256.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import ClassVar, Self

from heron.driver_kit.packages import CHUNK_BYTES, LocalPackage, PackageName, chunks_of, receive
from heron.errors import PackageError
from heron.spi.options import decode_options
from heron.spi.uploader import PackageEntry, Uploader
from heron_uploader_http.folder import Folder
from heron_uploader_http.options import HttpOptions

__all__ = ["HttpUploader"]


class HttpUploader(Uploader):
    """Packages in a folder of a web server, for containers on every machine that reaches it."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"listing", "server", "shared"})
    options_type: ClassVar[type] = HttpOptions

    def __init__(self, options: HttpOptions) -> None:
        self._folder = Folder(options)

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Makes the client; nothing is asked yet."""
        return cls(decode_options(options, HttpOptions, "uploader"))

    def check(self, timeout_s: float) -> str:
        """The server says whether a file is there that nobody has."""
        self._folder.find(PackageName("check", "0" * 64).file, timeout_s)
        return f"{self._folder.url} answers"

    def upload(self, package: Path, name: str) -> str:
        """Puts the file, unless it is there and whole."""
        PackageName(name, "")
        local = LocalPackage.read(package, CHUNK_BYTES)
        file = PackageName(name, local.digest).file
        is_there = self._folder.find(file) is not None
        if not (is_there and self._is_whole(file, local)):
            stored = self._folder.put(file, self._outgoing(local), local.size_bytes, only_new=not is_there)
            if not stored and not self._is_whole(file, local):  # another upload came first, or left a half
                self._folder.put(file, self._outgoing(local), local.size_bytes, only_new=False)
            self._assure(file)
        self._moved(local.size_bytes, local.size_bytes)
        return self._folder.url_of(file)

    def undo(self, uri: str) -> None:
        """Deletes the file."""
        self._folder.delete(self._stored(uri).file)

    def download(self, uri: str, target: Path) -> None:
        """Gets the file, and goes on where a connection breaks."""
        stored = self._stored(uri)
        found = self._folder.find(stored.file)
        if found is None:
            msg = f"package {uri}: is not there; it was removed, submit the topology again"
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
        """Lists the folder with WebDAV's PROPFIND."""
        named = ((each, PackageName.of_file(each.file)) for each in self._folder.members())
        return tuple(
            PackageEntry(self._folder.url_of(each.file), stored.name, each.size_bytes, each.age_s)
            for each, stored in named
            if stored
        )

    def _outgoing(self, package: LocalPackage) -> Iterator[bytes]:
        """The content, refused at its end when it is not what was announced, so that the PUT breaks off."""
        digest, sent = hashlib.sha256(), 0
        for chunk in chunks_of(package.path):
            digest.update(chunk)
            sent += len(chunk)
            if sent >= package.size_bytes and digest.hexdigest() != package.digest:
                msg = f"package {package.path}: changed while it was uploaded; build it again"
                raise PackageError(msg)
            yield chunk
            self._moved(sent, package.size_bytes)

    def _assure(self, file: str) -> None:
        """That what was put is there: a server that is no store may say yes to everything."""
        if self._folder.find(file) is None:
            msg = (
                f"{self._folder.url_of(file)}: the server has taken the package and does not have it; "
                "is uploader.url a folder that keeps what is put there, without a cache in front?"
            )
            raise PackageError(msg)

    def _is_whole(self, file: str, package: LocalPackage) -> bool:
        found = self._folder.find(file)
        if found is None or found.size_bytes != package.size_bytes:
            return False
        digest = hashlib.sha256()
        for chunk in self._folder.read(file, 0, found.tag):
            digest.update(chunk)
        return digest.hexdigest() == package.digest

    def _stored(self, uri: str) -> PackageName:
        """The package that a URI names."""
        stored = PackageName.of_file(uri.rpartition("/")[2])
        if stored is None or uri != self._folder.url_of(stored.file):
            msg = (
                f"package URI {uri!r:.300} is not of the form URL/NAME-SHA256.tar.gz, or leads out of uploader.url "
                f"{self._folder.url!r}; use the profile that it was uploaded with"
            )
            raise PackageError(msg)
        return stored
