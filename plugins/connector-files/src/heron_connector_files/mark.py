"""Where reading of a file goes on, and how the file is recognised under another name, or compressed.

An inode names a file while it exists: a rotation that renames keeps it. It is not enough, because a file system gives
the inode of a removed file to the next one, ``copytruncate`` fills the same inode with another content, and compression
makes another inode. So a mark has digests of what was read: of the first bytes, and of the last ones before the offset.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b

__all__ = ["HEAD_BYTES", "TAIL_BYTES", "Mark", "digest", "time_mark"]

HEAD_BYTES = 4096
TAIL_BYTES = 64


def digest(data: bytes) -> bytes:
    """A short name of some bytes."""
    return blake2b(data, digest_size=16).digest()


@dataclass(frozen=True, slots=True)
class Mark:
    """A place in a file.

    Attributes:
        offset: in bytes of the content; above 0, except for a `time_mark`.
        head: the digest of the first bytes up to the offset, of at most `HEAD_BYTES`.
        tail: the digest of the last bytes before the offset, of at most `TAIL_BYTES`.
        modified_ns: when the file was written last, as of the last read; if it is gone, tells which files are newer.
        is_done: whether the file has been read to its end, and is only kept to know which files are newer.
    """

    name: str
    device: int
    inode: int
    offset: int
    head: bytes
    tail: bytes
    modified_ns: int
    is_done: bool

    def __repr__(self) -> str:
        return f"{self.name} (inode {self.inode}) at {self.offset}"


def time_mark(log: str, modified_ns: int) -> Mark:
    """The place behind files that were written before a time, when none of them is known any more."""
    return Mark(log, 0, 0, 0, b"", b"", modified_ns, is_done=True)
