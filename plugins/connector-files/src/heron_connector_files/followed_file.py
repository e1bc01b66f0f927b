"""A file of a log that is open, and how far it has been read."""

from __future__ import annotations

from pathlib import Path

from heron_connector_files.content import Content, GzContent, PlainContent
from heron_connector_files.directory import Entry
from heron_connector_files.log_line import LogLine
from heron_connector_files.mark import HEAD_BYTES, TAIL_BYTES, Mark, digest

__all__ = ["FollowedFile"]

_CHUNK_BYTES = 4096
_LINE_BYTES = 256
"""Bytes that a line usually has: a read fetches them for each line that it wants."""


class FollowedFile:
    """An open file.

    Attributes:
        name: its name when the directory was last listed.
        offset: where the next line begins.
        is_done: whether it is at its end and takes no more.
        seen_bytes: its size when it last had the content that is read here.
        seen_ns: when it was written last, as of then.
    """

    def __init__(self, directory: Path, entry: Entry) -> None:
        """Open a file at its begin.

        Raises:
            FileNotFoundError: when it is not there any more.
            ConnectorError: when it cannot be opened.
        """
        self.name, self.is_gz = entry.name, entry.is_gz
        self.content: Content = (GzContent if entry.is_gz else PlainContent)(directory / entry.name)
        self.offset = self.seen_bytes = self.seen_ns = 0
        self.is_done = False
        self._head = self._tail = b""
        self._begin, self._before, self._taken = 0, b"", b""  # of the last lines
        self._quiet: tuple[int, float] | None = None

    @property
    def identity(self) -> tuple[int, int]:
        """Device and inode."""
        return self.content.device, self.content.inode

    @property
    def is_fresh(self) -> bool:
        """Whether nothing of it has been read."""
        return not self.offset and not self.is_done

    def resume(self, mark: Mark) -> bool:
        """Go on at a mark. Returns False, and changes nothing, if the file has other content.

        Raises:
            ConnectorError: when the file is damaged.
        """
        size, modified_ns = self.content.size(), self.content.modified_ns
        head = self.content.read(0, min(mark.offset, HEAD_BYTES))
        if digest(head) != mark.head:
            return False
        before = max(0, mark.offset - TAIL_BYTES)
        tail = self.content.read(before, mark.offset - before)
        if digest(tail) != mark.tail or (mark.is_done and self.content.read(mark.offset, 1)):
            return False
        self.offset, self._head, self._tail, self.is_done = mark.offset, head, tail, mark.is_done
        self.seen_bytes, self.seen_ns = size, modified_ns
        return True

    def begins_like(self, other: FollowedFile) -> bool:
        """Whether all of its first bytes are those of the other file; False if it is empty."""
        head = self.content.read(0, HEAD_BYTES)
        return bool(head) and other.content.read(0, len(head)) == head

    def fetch(self, end: int, lines: int, line_bytes: int) -> bytes | None:
        """The bytes behind the offset for the wanted lines, but not behind `end`. None if the file has another content.

        The bytes before the offset come in the same call of the system, and must be those that were read there: a file
        that was truncated and filled again may be longer than it was.

        Raises:
            ConnectorError: when the file cannot be read.
        """
        if not self.is_gz and end < self.offset:
            return None
        data, modified_ns = b"", self.content.modified_ns
        for wanted in (max(_CHUNK_BYTES, lines * _LINE_BYTES), line_bytes + 1):
            count = min(wanted, line_bytes + 1)
            if not self.is_gz:
                count = min(count, end - self.offset)
            found = self.content.read(self.offset - len(self._tail), len(self._tail) + count)
            if not found.startswith(self._tail):
                return None
            data = found[len(self._tail) :]
            if b"\n" in data or len(data) < wanted:
                break
        self.seen_bytes, self.seen_ns = end, modified_ns
        return data

    def take(self, log: str, data: bytes, limit: int, line_bytes: int, *, is_end: bool) -> list[LogLine]:
        """The lines of fetched data. With `is_end` its last bytes are one, whether or not they have a line end."""
        parts = data.split(b"\n", limit)
        rest = parts.pop()
        follows = bool(self._tail) and not self._tail.endswith(b"\n")
        offset, lines = self.offset, list[LogLine]()
        for part in parts:
            lines.append(LogLine(log, offset, part.removesuffix(b"\r"), not follows))
            offset, follows = offset + len(part) + 1, False
        if not lines and rest and (is_end or len(rest) > line_bytes):
            lines.append(LogLine(log, offset, rest[:line_bytes], is_complete=False))
            offset += len(lines[0].data)
        self._advance(data[: offset - self.offset])
        return lines

    def is_quiet(self, size: int, now_s: float, for_s: float) -> bool:
        """Whether it has had this size for some time, as far as it was asked."""
        if self._quiet is None or self._quiet[0] != size:
            self._quiet = size, now_s
        return now_s - self._quiet[1] >= for_s

    def mark(self, offset: int | None = None) -> Mark | None:
        """The place behind the last lines, or of one of them; None for the begin of the file."""
        at = self.offset if offset is None else offset
        if not at:
            return None
        kept = self._before + self._taken
        tail = self._tail if at == self.offset else kept[: len(self._before) + at - self._begin][-TAIL_BYTES:]
        head = digest(self._head[:at])
        is_done = self.is_done and at == self.offset
        return Mark(self.name, *self.identity, at, head, digest(tail), self.seen_ns, is_done)

    def close(self) -> None:
        """Close it."""
        self.content.close()

    def _advance(self, taken: bytes) -> None:
        self._begin, self._before, self._taken = self.offset, self._tail, taken
        self._head += taken[: HEAD_BYTES - len(self._head)]
        self._tail = (self._tail + taken)[-TAIL_BYTES:]
        self.offset += len(taken)
