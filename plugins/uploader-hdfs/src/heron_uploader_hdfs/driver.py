"""The driver ``hdfs``: packages as files of an HDFS, named by their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Self

import msgspec

from heron.driver_kit.packages import PackageName, receive, translated_errors
from heron.errors import PackageError
from heron.spi.options import Secret, decode_options
from heron.spi.uploader import PackageEntry, Uploader
from heron_uploader_hdfs.parts import PARTS, Parts
from heron_uploader_hdfs.web_hdfs import WebHdfs

__all__ = ["HdfsOptions", "HdfsUploader"]

_URL = r"^https?://[^/;?#\s]+/?(;https?://[^/;?#\s]+/?)*$"
_ROOT = r"^(/[A-Za-z0-9_.,=@+-]+)+$"


class HdfsOptions(msgspec.Struct, frozen=True):
    """The driver's section of a profile."""

    url: Annotated[str, msgspec.Meta(pattern=_URL)]
    root: Annotated[str, msgspec.Meta(pattern=_ROOT)] = "/heron/packages"
    user: str = ""
    token: Secret = ""
    part_bytes: Annotated[int, msgspec.Meta(ge=1024 * 1024)] = 64 * 1024 * 1024

    def __post_init__(self) -> None:
        """No step of the path leads back."""
        if {".", ".."} & set(self.root.split("/")):
            message = f"root {self.root!r} has a step . or ..; write the path without"
            raise ValueError(message)


class HdfsUploader(Uploader):
    """Packages in a folder of an HDFS, for containers on every machine that reaches it."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"listing", "server", "shared"})
    options_type: ClassVar[type] = HdfsOptions

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Makes the driver; the first request is that of the first method."""
        return cls(decode_options(options, HdfsOptions, "uploader"))

    def __init__(self, options: HdfsOptions) -> None:
        self._options = options
        self._root = options.root

    def check(self, timeout_s: float) -> str:
        with self._hdfs() as hdfs:
            hdfs.limit(timeout_s)
            found = hdfs.entry(self._root)
        if found is not None and not found.is_folder:
            msg = f"{self._root} in HDFS at {self._options.url} is a file; choose another uploader.root"
            raise PackageError(msg)
        made = "" if found else ", which the first upload makes"
        return f"HDFS at {self._options.url}, folder {self._root}{made}"

    def upload(self, package: Path, name: str) -> str:
        """Sends it in parts; what is there already, from an upload that was cut short too, is not sent again."""
        with translated_errors(f"package {package}: cannot be read", "build it again"), package.open("rb") as file:
            stored = PackageName(name, hashlib.file_digest(file, "sha256").hexdigest())
            size_bytes = file.seek(0, 2)
        path = self._path(stored)
        with self._hdfs() as hdfs:
            if not self._is_whole(hdfs, stored, size_bytes):
                parts = Parts(hdfs, self._root, stored.file, self._options.part_bytes)
                whole = parts.send(package, size_bytes, self._moved)
                # Another upload of the same content may have been quicker; only what is not that is replaced.
                if not hdfs.move(whole, path) and not self._is_whole(hdfs, stored, size_bytes):
                    hdfs.move(whole, path, replace=True)
                parts.discard()
        self._moved(size_bytes, size_bytes)
        return f"hdfs://{path}"

    def undo(self, uri: str) -> None:
        path = f"{self._root}/{self._file_of(uri)}"
        with self._hdfs() as hdfs:
            hdfs.remove(path)

    def download(self, uri: str, target: Path) -> None:
        stored = self._stored(uri)
        path = self._path(stored)
        with self._hdfs() as hdfs:
            found = hdfs.entry(path)
            if found is None:
                msg = f"package {path} is not in HDFS at {self._options.url}; submit the topology again"
                raise PackageError(msg)
            size_bytes = found.size_bytes
            what = f"package {path} in HDFS at {self._options.url}"
            # HDFS refuses to read where nothing is.
            receive(
                lambda offset: hdfs.read(path, offset) if offset < size_bytes else (),
                target,
                stored.digest,
                what,
                self._moved,
                size_bytes,
            )

    def packages(self) -> tuple[PackageEntry, ...]:
        """All packages, and what uploads that were cut short have left."""
        with self._hdfs() as hdfs:
            entries = hdfs.entries(self._root)
            now_ms = max((hdfs.now_ms(), *(each.modified_ms for each in entries)))
            found = []
            for each in entries:
                match = PARTS.fullmatch(each.name)
                stored = PackageName.of_file(match["file"] if match else each.name)
                if stored is None:
                    continue
                size = sum(part.size_bytes for part in hdfs.entries(f"{self._root}/{each.name}"))
                age_s = (now_ms - each.modified_ms) / 1000
                found.append(PackageEntry(f"hdfs://{self._root}/{each.name}", stored.name, size, age_s, match is None))
            return tuple(found)

    def _hdfs(self) -> WebHdfs:
        return WebHdfs(self._options.url, self._options.user, self._options.token)

    def _path(self, stored: PackageName) -> str:
        return f"{self._root}/{stored.file}"

    def _is_whole(self, hdfs: WebHdfs, stored: PackageName, size_bytes: int) -> bool:
        """Whether the package is there with its content: read, since only that shows a damage."""
        found = hdfs.entry(self._path(stored))
        if found is None or found.size_bytes != size_bytes:
            return False
        digest = hashlib.sha256()
        for chunk in hdfs.read(self._path(stored), 0) if size_bytes else ():
            digest.update(chunk)
        return digest.hexdigest() == stored.digest

    def _file_of(self, uri: str) -> str:
        """The file's or folder's name in a URI that this driver has given."""
        file = uri.removeprefix(f"hdfs://{self._root}/")
        match = PARTS.fullmatch(file)
        if file == uri or PackageName.of_file(match["file"] if match else file) is None:
            msg = (
                f"package URI {uri!r:.300} is not of the form hdfs://{self._root}/NAME-DIGEST.tar.gz; "
                "use the profile that it was uploaded with"
            )
            raise PackageError(msg)
        return file

    def _stored(self, uri: str) -> PackageName:
        stored = PackageName.of_file(self._file_of(uri))
        if stored is None:
            msg = f"package URI {uri!r:.300} names an upload that was cut short; submit the topology again"
            raise PackageError(msg)
        return stored
