"""Stores packages as files named by their content, in a folder that only its owner can enter.

- A rename gives a package its name, so the package is complete or absent.
- An upload holds a lock on its partial file. A partial file without a lock belongs to a killed upload.
- A package is not forced to disk. A crash of the machine ends its topologies too, and `download` compares the SHA-256.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, BinaryIO, ClassVar, Self

import msgspec

from heron.clock import wall_s
from heron.driver_kit.private_files import check_private, check_usable, make_private_dir
from heron.errors import PackageError
from heron.spi.options import decode_options
from heron.spi.uploader import PackageEntry, Uploader
from heron_driver_kit.packages import PackageName, chunks_of, sha256_of, translated_errors
from heron_uploader_localfs.stored_package import StoredPackage

__all__ = ["LocalfsOptions", "LocalfsUploader"]

_CHUNK_BYTES = 1024 * 1024


class LocalfsOptions(msgspec.Struct, frozen=True):
    """The driver's section of a profile. `root` is the folder of the packages; ``~`` is the user's home."""

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
        """Read the option `root`. The folder is not created yet."""
        chosen = decode_options(options, LocalfsOptions, "uploader")
        # resolve() would follow links, but a URI names the root as the profile does.
        return cls(Path(os.path.abspath(Path(chosen.root).expanduser())))

    def check(self, timeout_s: float) -> str:
        """Check that the folder is writable or can be created."""
        with translated_errors(f"folder {self._root}: cannot be used", "choose another uploader.root"):
            check_usable(self._root)
            check_private(self._root, "package folder")
        return f"folder {self._root}"

    def upload(self, package: Path, name: str) -> str:
        """Copy the file into the root and return its URI."""
        digest = sha256_of(chunks_of(package))
        stored = StoredPackage(self._root, PackageName(name, digest))
        with translated_errors(f"package {package}: cannot be stored in {self._root}", "choose another uploader.root"):
            make_private_dir(self._root)
            check_private(self._root, "package folder")
            self._remove_abandoned(stored)
            if not (stored.path.exists() and sha256_of(chunks_of(stored.path)) == stored.digest):
                _copy(package, stored.path, digest)
        return stored.uri

    def undo(self, uri: str) -> None:
        """Remove the file, and partial files of killed uploads of the same content."""
        stored = StoredPackage.from_uri(self._root, uri)
        with translated_errors(f"package {stored.path}: cannot be removed", "remove it by hand"):
            self._remove_abandoned(stored)
            stored.path.unlink(missing_ok=True)

    def download(self, uri: str, target: Path) -> None:
        """Copy the file to `target` if its SHA-256 is that of the URI."""
        stored = StoredPackage.from_uri(self._root, uri)
        with translated_errors(f"package {stored.path}: cannot be fetched to {target}", "see uploader.root"):
            _copy(stored.path, target, stored.digest)

    def packages(self) -> tuple[PackageEntry, ...]:
        """List the packages in the folder."""
        with translated_errors(f"folder {self._root}: cannot be listed", "choose another uploader.root"):
            files = sorted(self._root.iterdir()) if self._root.exists() else []
            return tuple(each for path in files if (each := _entry(path)))

    def _remove_abandoned(self, stored: StoredPackage) -> None:
        """Remove the partial files of killed uploads of the same content."""
        for partial in self._root.glob(f"{_partial_prefix(stored.path)}*"):
            try:
                with partial.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    partial.unlink()
            except (FileNotFoundError, BlockingIOError):
                continue  # its upload is still running or has ended, or another upload removed the file


def _entry(path: Path) -> PackageEntry | None:
    stored = StoredPackage.of_path(path)
    if stored is None:
        return None
    try:
        status = path.stat()
    except FileNotFoundError:
        return None  # removed since the folder was listed
    return PackageEntry(stored.uri, stored.name.name, status.st_size, max(0.0, wall_s() - status.st_mtime))


def _copy(source: Path, target: Path, digest: str) -> None:
    """Copy a file under a temporary name, and rename the copy if its SHA-256 is `digest`."""
    descriptor, partial = _partial_file(target)
    try:
        with os.fdopen(descriptor, "wb") as sink:
            with source.open("rb") as opened:
                found = _transfer(opened, sink.write)
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
    """Create a locked file with mode 0600 beside `target`. The lock lasts at most as long as this process."""
    while True:
        descriptor, name = tempfile.mkstemp(prefix=_partial_prefix(target), dir=target.parent)
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if os.fstat(descriptor).st_nlink:
            return descriptor, Path(name)
        os.close(descriptor)  # another upload removed the file as abandoned before it was locked


def _transfer(source: BinaryIO, write: Callable[[bytes], int]) -> str:
    """Write the content of `source` and return its SHA-256."""
    digest = hashlib.sha256()
    while chunk := source.read(_CHUNK_BYTES):
        digest.update(chunk)
        write(chunk)
    return digest.hexdigest()


def _partial_prefix(path: Path) -> str:
    return f".{path.name}.part-"
