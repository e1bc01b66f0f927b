"""Names packages by their content and transfers them between a file and a store in pieces of bounded size.

A store names a package ``NAME-DIGEST.tar.gz`` with the whole SHA-256, so one name always has the same content. Names
also come back from stores and URIs that other people can write to. So they are parsed strictly: no name can lead to
another folder.
"""

from __future__ import annotations

import hashlib
import os
import re
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from heron.errors import PackageError
from heron.spi.uploader import Progress
from heron_driver_kit.os_errors import translated_os_errors

__all__ = [
    "CHUNK_BYTES",
    "InterruptedTransferError",
    "LocalPackage",
    "PackageName",
    "chunks_of",
    "receive",
    "sha256_of",
    "translated_errors",
]

CHUNK_BYTES = 256 * 1024
"""Bytes read at a time unless a caller needs another size."""

_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_FILE = re.compile(r"(?P<name>.+)-(?P<digest>[0-9a-f]{64})\.tar\.gz")
_NAME_LIMIT = 180  # with digest and ending it stays below 255 bytes, the limit for file names in most stores


class InterruptedTransferError(PackageError):
    """The connection was lost, or no data came for too long. The caller may ask for the rest again."""


@dataclass(frozen=True, slots=True)
class PackageName:
    """The name that a package was given, and the SHA-256 of its content, hexadecimal."""

    name: str
    digest: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or len(self.name) > _NAME_LIMIT:
            msg = (
                f"package name {self.name!r:.80} is refused; use letters, digits, '_', '-' and inner dots, "
                f"at most {_NAME_LIMIT} characters"
            )
            raise PackageError(msg)

    @property
    def file(self) -> str:
        """The last part of its path, key or URL."""
        return f"{self.name}-{self.digest}.tar.gz"

    @classmethod
    def of_file(cls, file: str) -> PackageName | None:
        """Parse a file name; None when it does not have the form of `file`."""
        found = _FILE.fullmatch(file)
        if found is None or not _NAME.fullmatch(found["name"]) or len(found["name"]) > _NAME_LIMIT:
            return None
        return cls(found["name"], found["digest"])


@dataclass(frozen=True, slots=True)
class LocalPackage:
    """A package file that was read once. Its checksums are known, so a later change is noticed."""

    path: Path
    size_bytes: int
    digest: str
    part_bytes: int
    part_md5: tuple[bytes, ...]
    """MD5 of each part of `part_bytes`; the last part may be shorter. An empty file has one empty part."""

    @classmethod
    def read(cls, path: Path, part_bytes: int) -> LocalPackage:
        """Read the file.

        Raises:
            PackageError: when it cannot be read.
        """
        whole, md5s, size = hashlib.sha256(), [hashlib.md5(usedforsecurity=False)], 0
        for chunk in chunks_of(path):
            for piece in _cut(chunk, part_bytes - size % part_bytes, part_bytes):
                if size and size % part_bytes == 0:
                    md5s.append(hashlib.md5(usedforsecurity=False))
                md5s[-1].update(piece)
                size += len(piece)
            whole.update(chunk)
        return cls(path, size, whole.hexdigest(), part_bytes, tuple(each.digest() for each in md5s))

    def part(self, index: int) -> bytes:
        """Read one part from the file.

        Raises:
            PackageError: when it cannot be read, or is shorter than before.
        """
        start = index * self.part_bytes
        with translated_errors(f"package {self.path}: cannot be read", "build it again"), self.path.open("rb") as file:
            file.seek(start)
            data = file.read(self.part_bytes)
        if len(data) != min(self.part_bytes, self.size_bytes - start):
            msg = f"package {self.path}: changed while it was uploaded; build it again"
            raise PackageError(msg)
        return data


def chunks_of(path: Path, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """Yield the content of a package file.

    Raises:
        PackageError: when it cannot be read.
    """
    with translated_errors(f"package {path}: cannot be read", "build it again"), path.open("rb") as file:
        while chunk := file.read(chunk_bytes):
            yield chunk


def sha256_of(chunks: Iterable[bytes]) -> str:
    """Return the SHA-256 of the content that arrives in chunks, hexadecimal."""
    digest = hashlib.sha256()
    for chunk in chunks:
        digest.update(chunk)
    return digest.hexdigest()


def receive(
    source: Callable[[int], Iterable[bytes]], target: Path, digest: str, what: str, progress: Progress, total_bytes: int
) -> None:
    """Write a package to the file `target`, complete and with the SHA-256 `digest`, or leave `target` unchanged.

    `source` yields the content from an offset on. When it raises InterruptedTransferError after some data came, it is
    called again with the new offset. `what` begins the messages.

    Raises:
        PackageError: when the content differs from `digest`, or cannot be written.
        InterruptedTransferError: when no data came before the interruption.
    """
    found, have = hashlib.sha256(), 0
    with _partial(target) as (file, commit):
        interrupted = True
        while interrupted:
            interrupted, start = False, have
            try:
                for chunk in source(have):
                    with translated_errors(f"{what}: cannot be written to {target.parent}", "free some space there"):
                        file.write(chunk)
                    found.update(chunk)
                    have += len(chunk)
                    progress(min(have, total_bytes), total_bytes)
            except InterruptedTransferError:
                if have == start:
                    raise
                interrupted = True
        if found.hexdigest() != digest:
            msg = (
                f"{what}: its SHA-256 is {found.hexdigest()}, not {digest}; the package was changed or is incomplete, "
                f"submit the topology again"
            )
            raise PackageError(msg)
        commit()


@contextmanager
def translated_errors(what: str, remedy: str) -> Iterator[None]:
    """Turn an OSError of the block into a PackageError, as `heron_driver_kit.os_errors` does."""
    with translated_os_errors(PackageError, what, remedy):
        yield


class _Unbuffered:
    """Writes at once, so that the write reports a full disk and not a later close."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]


@contextmanager
def _partial(target: Path) -> Iterator[tuple[_Unbuffered, Callable[[], None]]]:
    """A temporary file beside the target. The commit renames it to the target; without a commit it is removed."""
    with translated_errors(f"package {target}: cannot be created", "check that its folder exists and is writable"):
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.part-", dir=target.parent)  # mode 0600
    partial = Path(name)

    def commit() -> None:
        with translated_errors(f"package {target}: cannot be created", "check that its path is free"):
            partial.replace(target)

    try:
        yield _Unbuffered(descriptor), commit
    finally:
        os.close(descriptor)
        partial.unlink(missing_ok=True)


def _cut(chunk: bytes, first: int, then: int) -> Iterator[bytes]:
    yield chunk[:first]
    for start in range(first, len(chunk), then):
        yield chunk[start : start + then]
