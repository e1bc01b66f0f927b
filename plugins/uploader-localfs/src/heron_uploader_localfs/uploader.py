"""Stores packages as files named by their content, in a folder that only its owner can enter.

A package appears under its name by a rename, so it is there whole or not at all. Who writes a partial file holds its
lock, so that what a killed upload left is told from what is being written. A package is not forced to the disk: a
machine that crashes takes its topologies with it, and `download` compares the SHA-256 anyway.
"""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, BinaryIO, ClassVar, Self

import msgspec

from heron.clock import wall_s
from heron.driver_kit.packages import PackageName
from heron.driver_kit.private_files import make_private_dir
from heron.errors import PackageError
from heron.spi.options import decode_options
from heron.spi.uploader import PackageEntry, Uploader
from heron_uploader_localfs.stored_package import StoredPackage

__all__ = ["LocalfsOptions", "LocalfsUploader"]

_CHUNK_BYTES = 1024 * 1024


class LocalfsOptions(msgspec.Struct, frozen=True):
    """The driver's section of a profile; `root` is the folder of the packages, ``~`` is the user's home."""

    root: Annotated[str, msgspec.Meta(min_length=1)] = "~/.heron/packages"


class LocalfsUploader(Uploader):
    """Packages in the folder `root`, for containers on the same machine."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"files", "listing"})
    options_type: ClassVar[type] = LocalfsOptions

    def __init__(self, root: Path) -> None:
        self._root = root

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Takes the option `root`; touches nothing yet."""
        chosen = decode_options(options, LocalfsOptions, "uploader")
        # Not resolve(): it follows links, and a URI names the root as the profile does.
        return cls(Path(os.path.abspath(Path(chosen.root).expanduser())))

    def check(self, timeout_s: float) -> str:
        """The folder can be written, or made."""
        with _explained(f"folder {self._root}: cannot be used", "choose another uploader.root"):
            there = next(each for each in (self._root, *self._root.parents) if os.path.lexists(each))
            os.listdir(there)
            if not os.access(there, os.W_OK | os.X_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(there))
        return f"folder {self._root}"

    def upload(self, package: Path, name: str) -> str:
        """Copies the file into the root and returns its URI."""
        digest = self._digest(package, f"package {package}: cannot be read")
        stored = StoredPackage(self._root, PackageName(name, digest))
        with _explained(f"package {package}: cannot be stored in {self._root}", "choose another uploader.root"):
            make_private_dir(self._root)
            self._drop_abandoned(stored)
            if not self._is_whole(stored):
                _copy(package, stored.path, digest)
        return stored.uri

    def undo(self, uri: str) -> None:
        """Removes the file, and what killed uploads of it left."""
        stored = StoredPackage.from_uri(self._root, uri)
        with _explained(f"package {stored.path}: cannot be removed", "remove it by hand"):
            self._drop_abandoned(stored)
            stored.path.unlink(missing_ok=True)

    def download(self, uri: str, target: Path) -> None:
        """Copies the file to `target` when its SHA-256 is the URI's."""
        stored = StoredPackage.from_uri(self._root, uri)
        with _explained(f"package {stored.path}: cannot be fetched to {target}", "see uploader.root"):
            _copy(stored.path, target, stored.digest)

    def packages(self) -> tuple[PackageEntry, ...]:
        """Lists the folder."""
        with _explained(f"folder {self._root}: cannot be listed", "choose another uploader.root"):
            files = sorted(self._root.iterdir()) if self._root.exists() else []
            return tuple(each for path in files if (each := _entry(path)))

    def _digest(self, package: Path, what: str) -> str:
        with _explained(what, "build it again"), package.open("rb") as source:
            return hashlib.file_digest(source, "sha256").hexdigest()

    def _is_whole(self, stored: StoredPackage) -> bool:
        return stored.path.exists() and self._digest(stored.path, f"package {stored.path}") == stored.digest

    def _drop_abandoned(self, stored: StoredPackage) -> None:
        """Removes the partial files that killed uploads of the same content left."""
        for partial in self._root.glob(f"{_partial_prefix(stored.path)}*"):
            try:
                with partial.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    partial.unlink()
            except (FileNotFoundError, BlockingIOError):
                continue  # its upload goes on, has finished meanwhile, or another one removed it


def _entry(path: Path) -> PackageEntry | None:
    stored = StoredPackage.of_path(path)
    if stored is None:
        return None
    try:
        status = path.stat()
    except FileNotFoundError:
        return None  # it was removed meanwhile
    return PackageEntry(stored.uri, stored.name.name, status.st_size, max(0.0, wall_s() - status.st_mtime))


def _copy(source: Path, target: Path, digest: str) -> None:
    """Copies a file under a temporary name and renames it when its SHA-256 is `digest`."""
    descriptor, partial = _partial_file(target)
    try:
        with os.fdopen(descriptor, "wb") as sink:
            with source.open("rb") as opened:
                found = _pump(opened, sink.write)
            if found != digest:
                msg = (
                    f"package {source}: its SHA-256 is {found}, not {digest}; it was changed, submit the topology again"
                )
                raise PackageError(msg)
            sink.flush()
            partial.replace(target)  # before the lock is released: another upload would remove the partial file
    finally:
        partial.unlink(missing_ok=True)


def _partial_file(target: Path) -> tuple[int, Path]:
    """A new file beside `target`, mode 0600, its lock taken: as long as this process lives nobody removes it."""
    while True:
        descriptor, name = tempfile.mkstemp(prefix=_partial_prefix(target), dir=target.parent)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, Path(name)
        os.close(descriptor)  # somebody took it for abandoned before the lock was taken


def _pump(source: BinaryIO, write: Callable[[bytes], int]) -> str:
    """Passes the content on and returns its SHA-256."""
    digest = hashlib.sha256()
    while chunk := source.read(_CHUNK_BYTES):
        digest.update(chunk)
        write(chunk)
    return digest.hexdigest()


def _partial_prefix(path: Path) -> str:
    return f".{path.name}.part-"


@contextmanager
def _explained(what: str, remedy: str) -> Iterator[None]:
    """Turns an OSError into a PackageError that says what to do."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            remedy = "free some space there"
        elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            remedy = f"allow it, or {remedy}"
        place = f" ({error.filename})" if error.filename else ""
        msg = f"{what}: {error.strerror or error}{place}; {remedy}"
        raise PackageError(msg) from error
