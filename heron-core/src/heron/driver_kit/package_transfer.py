"""Packages between a file and a server, in pieces: what is in memory at a time does not depend on their size."""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from heron.errors import PackageError
from heron.spi.uploader import Progress

__all__ = ["CHUNK_BYTES", "InterruptedTransferError", "LocalPackage", "chunks_of", "explained", "receive"]

CHUNK_BYTES = 256 * 1024
"""What is read at a time where nothing asks for more."""


class InterruptedTransferError(PackageError):
    """The connection was lost, or nothing came for too long: what is still to come may be asked for again."""


@dataclass(frozen=True, slots=True)
class LocalPackage:
    """A package file that was read once: its content is known, so that a change after that is noticed."""

    path: Path
    size_bytes: int
    digest: str
    part_bytes: int
    part_md5: tuple[bytes, ...]
    """Of each `part_bytes` of it, the last one shorter; of one empty part when there is nothing in it."""

    @classmethod
    def read(cls, path: Path, part_bytes: int) -> LocalPackage:
        """Reads the file.

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
        """One part of it, from the file.

        Raises:
            PackageError: when it cannot be read, or is shorter than it was.
        """
        start = index * self.part_bytes
        with explained(f"package {self.path}: cannot be read", "build it again"), self.path.open("rb") as file:
            file.seek(start)
            data = file.read(self.part_bytes)
        if len(data) != min(self.part_bytes, self.size_bytes - start):
            msg = f"package {self.path}: changed while it was uploaded; build it again"
            raise PackageError(msg)
        return data


def chunks_of(path: Path, chunk_bytes: int = CHUNK_BYTES) -> Iterator[bytes]:
    """The content of a package file.

    Raises:
        PackageError: when it cannot be read.
    """
    with explained(f"package {path}: cannot be read", "build it again"), path.open("rb") as file:
        while chunk := file.read(chunk_bytes):
            yield chunk


def receive(
    source: Callable[[int], Iterable[bytes]], target: Path, digest: str, what: str, progress: Progress, total_bytes: int
) -> None:
    """Brings a package into the file `target`, whole and with the SHA-256 `digest`, or leaves that as it was.

    `source` gives the content from an offset on; when it raises InterruptedTransferError after some of it came, it is
    asked for the rest.

    Raises:
        PackageError: when that differs from `digest`, or cannot be written; `what` begins the message.
        InterruptedTransferError: when nothing came before the interruption.
    """
    found, have = hashlib.sha256(), 0
    with _partial(target) as (file, commit):
        going_on = True
        while going_on:
            going_on, start = False, have
            try:
                for chunk in source(have):
                    with explained(f"{what}: cannot be written to {target.parent}", "make room there"):
                        file.write(chunk)
                    found.update(chunk)
                    have += len(chunk)
                    progress(min(have, total_bytes), total_bytes)
            except InterruptedTransferError:
                if have == start:
                    raise
                going_on = True
        if found.hexdigest() != digest:
            msg = (
                f"{what}: its SHA-256 is {found.hexdigest()}, not {digest}; it was changed or is not whole, "
                f"submit the topology again"
            )
            raise PackageError(msg)
        commit()


@contextmanager
def explained(what: str, remedy: str) -> Iterator[None]:
    """Turns an OSError into a PackageError that says what to do."""
    try:
        yield
    except OSError as error:
        place = f" ({error.filename})" if error.filename else ""
        msg = f"{what}: {error.strerror or error}{place}; {remedy}"
        raise PackageError(msg) from error


class _Unbuffered:
    """Writes at once, so that a full disk is told by the write and not by a later close."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: bytes) -> None:
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]


@contextmanager
def _partial(target: Path) -> Iterator[tuple[_Unbuffered, Callable[[], None]]]:
    """A temporary file beside the target that takes its place when it is committed, and is gone otherwise."""
    with explained(f"package {target}: cannot be made", "see that its folder is there and can be written"):
        descriptor, name = tempfile.mkstemp(prefix=f".{target.name}.part-", dir=target.parent)  # mode 0600
    partial = Path(name)

    def commit() -> None:
        with explained(f"package {target}: cannot be made", "see that nothing is in its way"):
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
