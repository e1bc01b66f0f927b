"""The driver ``hdfs``: packages as files in HDFS, named by their content."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Self

import msgspec

from heron.errors import PackageError
from heron.spi.options import decode_options
from heron.spi.uploader import PackageEntry, Uploader
from heron_driver_kit.packages import InterruptedTransferError, PackageName, receive, sha256_of, translated_errors
from heron_hdfs_kit.place import HdfsPlace, HdfsRoot
from heron_hdfs_kit.web_hdfs import HdfsErrors, WebHdfs
from heron_uploader_hdfs.parts import PARTS, Parts

__all__ = ["ERRORS", "HdfsOptions", "HdfsUploader"]

ERRORS = HdfsErrors(
    section="uploader",
    space="run `heron packages prune`",
    again="submit the topology again",
    refused=PackageError,
    unanswered=InterruptedTransferError,
)


class HdfsOptions(HdfsPlace, frozen=True):
    """The driver's section of a profile."""

    root: HdfsRoot = "/heron/packages"
    part_bytes: Annotated[int, msgspec.Meta(ge=1024 * 1024)] = 64 * 1024 * 1024


class HdfsUploader(Uploader):
    """Packages in a folder of HDFS, for containers on every machine that can reach HDFS."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"listing", "server", "shared"})
    options_type: ClassVar[type] = HdfsOptions

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Create the driver. The first call connects."""
        return cls(decode_options(options, HdfsOptions, "uploader"))

    def __init__(self, options: HdfsOptions) -> None:
        self._options = options
        self._root = options.root

    def check(self, timeout_s: float) -> str:
        return self._options.check(ERRORS, timeout_s, "upload")

    def upload(self, package: Path, name: str) -> str:
        """Send the package in parts. A stored package and stored parts of an interrupted upload are not sent again."""
        with translated_errors(f"package {package}: cannot be read", "build it again"), package.open("rb") as file:
            stored = PackageName(name, hashlib.file_digest(file, "sha256").hexdigest())
            size_bytes = file.seek(0, 2)
        path = self._path(stored)
        with self._hdfs() as hdfs:
            if not self._is_whole(hdfs, stored, size_bytes):
                parts = Parts(hdfs, self._root, stored.file, self._options.part_bytes)
                whole = parts.send(package, size_bytes, self._moved)
                # Another upload of the same content may have been faster. Only a damaged package is replaced.
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
                msg = f"package {path} in HDFS at {self._options.url}: not found; submit the topology again"
                raise PackageError(msg)
            size_bytes = found.size_bytes
            what = f"package {path} in HDFS at {self._options.url}"
            # HDFS refuses to read from the end of a file on, so it refuses every read of an empty file.
            receive(
                lambda offset: hdfs.read(path, offset) if offset < size_bytes else (),
                target,
                stored.digest,
                what,
                self._moved,
                size_bytes,
            )

    def packages(self) -> tuple[PackageEntry, ...]:
        """List the packages, and the parts of interrupted uploads."""
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
        return self._options.connected(ERRORS)

    def _path(self, stored: PackageName) -> str:
        return f"{self._root}/{stored.file}"

    def _is_whole(self, hdfs: WebHdfs, stored: PackageName, size_bytes: int) -> bool:
        """Read the stored package, because its size alone does not show a damage; False when it is missing."""
        found = hdfs.entry(self._path(stored))
        if found is None or found.size_bytes != size_bytes:
            return False
        return sha256_of(hdfs.read(self._path(stored), 0) if size_bytes else ()) == stored.digest

    def _file_of(self, uri: str) -> str:
        """Parse a URI into the name of a package, or of a folder of parts."""
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
            msg = f"package URI {uri!r:.300} names an interrupted upload; submit the topology again"
            raise PackageError(msg)
        return stored
