"""Cuts a package into pieces that equal versions share: its gzip members.

`heron` writes a package as gzip members, of which most stay equal when a file changes. The pieces in sequence are the
package, byte for byte. A file that is not gzip is one piece.
"""

from __future__ import annotations

import hashlib
import secrets
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from heron.errors import PackageError
from heron_driver_kit.packages import CHUNK_BYTES, chunks_of, translated_errors

__all__ = ["CutPackage", "Piece"]

_GZIP = 31  # the window of zlib for a member with its header
_OUTPUT_BYTES = 1 << 20  # of the decompressed content, which is not used


@dataclass(frozen=True, slots=True)
class Piece:
    """A part of a package file; `digest` is ``sha256:`` and 64 hexadecimal digits."""

    start: int
    size_bytes: int
    digest: str


@dataclass(frozen=True, slots=True)
class CutPackage:
    """A package file with its pieces, in order; `digest` is its SHA-256, hexadecimal."""

    path: Path
    size_bytes: int
    digest: str
    pieces: tuple[Piece, ...]

    @classmethod
    def read(cls, path: Path) -> CutPackage:
        """Read and cut the file.

        Raises:
            PackageError: when it cannot be read.
        """
        ends = list(_ends(path))
        whole, digests, size, done = hashlib.sha256(), [hashlib.sha256()], 0, iter(ends)
        end = next(done, None)
        for chunk in chunks_of(path):
            whole.update(chunk)
            rest = chunk
            while end is not None and size + len(rest) > end:
                cut = end - size
                digests[-1].update(rest[:cut])
                digests.append(hashlib.sha256())
                rest, size, end = rest[cut:], end, next(done, None)
            digests[-1].update(rest)
            size += len(rest)
        starts = [0, *ends]
        sizes = [after - start for start, after in zip(starts, [*ends, size], strict=True)]
        pieces = tuple(
            Piece(start, length, f"sha256:{digest.hexdigest()}")
            for start, length, digest in zip(starts, sizes, digests, strict=True)
        )
        return cls(path, size, whole.hexdigest(), pieces)

    def content(self, piece: Piece) -> Iterator[bytes]:
        """Yield the content of a piece; the last chunk comes only if it is as before.

        Raises:
            PackageError: when the file cannot be read, or has changed.
        """
        left, found = piece.size_bytes, hashlib.sha256()
        with translated_errors(f"package {self.path}: cannot be read", "build it again"), self.path.open("rb") as file:
            file.seek(piece.start)
            while chunk := file.read(min(left, CHUNK_BYTES)):
                found.update(chunk)
                left -= len(chunk)
                if left == 0 and f"sha256:{found.hexdigest()}" != piece.digest:
                    break
                yield chunk
        if left or f"sha256:{found.hexdigest()}" != piece.digest:
            msg = f"package {self.path}: changed while it was uploaded; build it again"
            raise PackageError(msg)

    def halves(self, piece: Piece) -> tuple[Piece, ...]:
        """Return the same bytes as two other pieces, cut at a place by chance; `piece` has two bytes or more."""
        first = 1 + secrets.randbelow(piece.size_bytes - 1)
        digests = hashlib.sha256(), hashlib.sha256()
        seen = 0
        for chunk in self.content(piece):
            cut = min(max(first - seen, 0), len(chunk))
            digests[0].update(chunk[:cut])
            digests[1].update(chunk[cut:])
            seen += len(chunk)
        sizes = first, piece.size_bytes - first
        starts = piece.start, piece.start + first
        return tuple(
            Piece(start, size, f"sha256:{digest.hexdigest()}")
            for start, size, digest in zip(starts, sizes, digests, strict=True)
        )


def _ends(path: Path) -> Iterator[int]:
    """Yield where a gzip member ends and more follows."""
    reader, done, waiting = zlib.decompressobj(_GZIP), 0, 0
    for chunk in chunks_of(path):
        if waiting:
            yield waiting
            waiting = 0
        data = chunk
        while data:
            try:
                reader.decompress(data, _OUTPUT_BYTES)
            except zlib.error:
                return  # the rest is one piece
            if reader.eof:
                data = reader.unused_data
                reader = zlib.decompressobj(_GZIP)
                end = done + len(chunk) - len(data)
                if data:
                    yield end
                else:
                    waiting = end
            else:
                data = reader.unconsumed_tail
        done += len(chunk)
