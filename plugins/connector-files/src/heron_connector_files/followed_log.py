"""A log: its files, from the oldest that is not read to the one that is written.

**The order.** The file that was read last is the anchor. What the directory has behind it, by the order of `directory`,
is not read yet. So the anchor stays until something of a later file was read.

**Renamed files** are recognised by their inode, and stay open: a writer may still have them open, too. Sizes are looked
at from the newest file to the oldest, and lines are read from the oldest. So a line of a writer never overtakes an
older one when the writer goes on with the next file.

**Few files are open.** Of the files that are not read yet, the next ones are open, and the one that is written. The
others are opened when something of the next ones was read. Until then the file that is written waits.

**Copied and truncated files.** Before a file is truncated, all of it is in the copy. So if a file has other bytes
before the offset than were read there, reading goes on in the file that has them. A file of which nothing was read has
no such bytes: the directory is listed again after its first bytes were fetched, and a copy that is there by then is
read first. A copy that begins like the file which is written does not count: that file is not truncated yet.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from heron.errors import ConnectorError
from heron_connector_files.directory import Entry
from heron_connector_files.followed_file import FollowedFile
from heron_connector_files.log_line import LogLine
from heron_connector_files.mark import Mark, time_mark

__all__ = ["FollowedLog", "Rules"]

_log = logging.getLogger(__name__)
_INEXACT_NS = 1_000_000  # compression may round the time of a file
_NEXT = 4  # files that are open before they are read
_MOST_OPEN = 64  # rotated files that may still be written; older ones have to rest before more are opened
_TRIES = 8  # a log that is rotated again and again meanwhile is read at the next call


@dataclass(frozen=True, slots=True)
class Rules:
    """How logs are read; see `FilesSource`."""

    directory: Path
    line_bytes: int
    linger_s: float
    skips_missing: bool


class FollowedLog:
    """One log. `entries` lists its files in the directory, the oldest first.

    Attributes:
        lost: how many files were gone before they had been read to their end, and were passed over.
        truncated: how many times its file was truncated, and what had been read was nowhere else.
    """

    def __init__(self, name: str, rules: Rules, marks: Sequence[Mark], entries: Callable[[], Sequence[Entry]]) -> None:
        self.name = name
        self.lost = self.truncated = 0
        self._rules = rules
        self._marks: Sequence[Mark] | None = marks
        """Where reading goes on; None when the files are open."""
        self._entries = entries
        self._files: list[FollowedFile] = []
        self._waiting: Sequence[Entry] = ()  # rotated files that are not open yet
        self._last: FollowedFile | None = None
        self._after_ns = 0  # files that were written last before it have been read

    def follow(self, entries: Sequence[Entry] | None = None) -> None:
        """Take over what the directory has, or has had a moment ago.

        Raises:
            ConnectorError: when a file cannot be opened, or one that was not read to its end is gone.
        """
        if entries is None:
            entries = self._entries()
        if self._marks is not None:
            self._restore(self._marks, entries)
            self._marks = None
        anchor = next((each for each in reversed(self._files) if not each.is_fresh), None)
        begin = _after(entries, self._after_ns) if anchor is None else self._behind(anchor, entries)
        kept = self._files[: self._files.index(anchor) + 1] if anchor is not None else []
        fresh = {each.identity: each for each in self._files[len(kept) :]}
        identities = {each.identity for each in kept}
        newer = [each for each in entries[begin:] if each.identity not in identities]
        found, waiting = self._newer(newer, fresh, min(_NEXT, _MOST_OPEN - len(kept)))
        lost: list[FollowedFile] = []  # open, and nowhere in the directory
        for file in fresh.values():
            if not file.is_gz and file.content.size() and not self._is_among(file, found, waiting):
                lost.append(file)
            else:
                file.close()
        self._files, self._waiting = [*kept, *lost, *found], waiting

    def read(self, limit: int, now_s: float) -> list[LogLine]:
        """The next lines, all of one file; empty if there are none now.

        Raises:
            ConnectorError: as `follow`, or when a file cannot be read.
        """
        if self._marks is not None:
            self.follow()
        while len(self._files) > 1 and self._files[0].is_done and any(each.offset for each in self._files[1:]):
            self._files.pop(0).close()
        for _ in range(_TRIES):
            lines = self._read(limit, now_s)
            if lines is not None:
                return lines
        return []

    def marks(self, offset: int | None = None) -> tuple[Mark, ...]:
        """Where reading goes on; with an offset, at that line of the last `read`."""
        if self._marks is not None:
            return tuple(self._marks)
        marks = (each.mark(offset if each is self._last else None) for each in self._files)
        found = tuple(each for each in marks if each is not None)
        return found if found or not self._after_ns else (time_mark(self.name, self._after_ns),)

    def lag_bytes(self) -> int:
        """How many bytes are not read; 0 before the first `read`. Files that wait count with their size on the disk."""
        opened = sum(max(0, each.content.size() - each.offset) for each in self._files if not each.is_done)
        return opened + sum(each.size for each in self._waiting)

    @property
    def is_done(self) -> bool:
        """Whether all of its files are done."""
        return self._marks is None and not self._waiting and all(each.is_done for each in self._files)

    def close(self) -> None:
        """Close its files."""
        for each in self._files:
            each.close()

    def _read(self, limit: int, now_s: float) -> list[LogLine] | None:
        """Lines; None if the files are other ones by now."""
        files = [each for each in self._files if not each.is_done and not self._waits(each)]
        ends = [each.content.size() for each in reversed(files)][::-1]  # the newest first: see above
        for file, end in zip(files, ends, strict=True):
            data = file.fetch(end, limit, self._rules.line_bytes)
            if data is None:
                self._find_copy(file)
                return None
            is_end = self._has_ended(file, end, now_s)
            has_lines = b"\n" in data or len(data) > self._rules.line_bytes or (data and is_end)
            if has_lines and file.is_fresh and not self._is_next(file):
                return None
            lines = file.take(self.name, data, limit, self._rules.line_bytes, is_end=is_end)
            if lines:
                self._last = file
                return lines
            file.is_done = is_end
        return None if self._waiting and self._moves_on() else []

    def _waits(self, file: FollowedFile) -> bool:
        """Whether it is the file that is written, and others come before it."""
        return bool(self._waiting) and file is self._files[-1] and file.is_fresh and file.name == self.name

    def _moves_on(self) -> bool:
        """Whether files that waited are open now."""
        before = self._files
        self.follow()
        return self._files != before

    def _newer(
        self, entries: Sequence[Entry], fresh: dict[tuple[int, int], FollowedFile], limit: int
    ) -> tuple[list[FollowedFile], list[Entry]]:
        """The first `limit` files of the entries, the one that is written, and the entries that have to wait.

        Files that are open are taken out of `fresh`.
        """
        found: list[FollowedFile] = []
        new: list[FollowedFile] = []
        waiting: list[Entry] = []
        try:
            for entry in entries:
                if entry.suffix and len(found) >= limit:
                    waiting.append(entry)
                    continue
                file = fresh.pop(entry.identity, None)
                if file is None and (file := _opened(self._rules.directory, entry)) is not None:
                    new.append(file)
                if file is not None:
                    file.name = entry.name
                    found.append(file)
            written = found[-1] if found and found[-1].name == self.name else None
            copies = [each for each in new if written is not None and each is not written and each.begins_like(written)]
        except ConnectorError:
            for file in new:
                file.close()
            raise
        for file in copies:  # what they are copies of is not truncated yet
            found.remove(file)
            file.close()
        return found, waiting

    def _is_next(self, file: FollowedFile) -> bool:
        """Whether no other file comes before it in the directory."""
        before = self._files[: self._files.index(file)]
        self.follow()
        return self._files[: len(before) + 1] == [*before, file]

    def _has_ended(self, file: FollowedFile, size: int, now_s: float) -> bool:
        if file.is_gz:
            return True
        if file is self._files[-1] and file.content.is_linked:
            return False
        return file.is_quiet(size, now_s, self._rules.linger_s)

    def _restore(self, marks: Sequence[Mark], entries: Sequence[Entry]) -> None:
        files: list[FollowedFile] = []
        lost = 0
        try:
            for mark in marks:
                file = self._holder(mark, entries) if mark.offset else None
                if file is not None:
                    files.append(file)
                elif not mark.is_done:
                    if not self._rules.skips_missing:
                        raise _missing(self._rules.directory / self.name, mark)
                    _log.warning("log %s: %r is gone; what was not read of it is passed over", self.name, mark)
                    lost += 1
        except ConnectorError:
            for each in files:
                each.close()
            raise
        self._files = files
        self.lost += lost
        self._after_ns = max((each.modified_ns for each in marks), default=0)

    def _holder(self, mark: Mark, entries: Sequence[Entry]) -> FollowedFile | None:
        """The file that has what was read: the one with its inode, else the oldest that was written since then."""
        of_inode, written_ns = (mark.device, mark.inode), mark.modified_ns - _INEXACT_NS
        later = [each for each in entries if each.modified_ns >= written_ns]
        asked = [*later, *(each for each in reversed(entries) if each.modified_ns < written_ns)]
        asked.sort(key=lambda each: each.identity != of_inode)
        for entry in asked:
            file = _opened(self._rules.directory, entry, even_empty=False)
            if file is not None:
                if _reads(self.name, partial(file.resume, mark)):
                    return file
                file.close()
        return None

    def _find_copy(self, file: FollowedFile) -> None:
        """The file has another content: what was read of it is in a copy, or nowhere."""
        mark = file.mark()
        assert mark is not None  # noqa: S101  # nothing was read of a file without one
        entries = self._entries()
        others = [each for each in entries if each.identity != file.identity]
        index = self._files.index(file)
        holder = self._holder(mark, others)
        if holder is None:
            self._pass_over(file, mark)
        file.close()
        self._files[index : index + 1] = [] if holder is None else [holder]
        self.follow()

    def _pass_over(self, file: FollowedFile, mark: Mark) -> None:
        """The lines of a truncated file are nowhere: reading goes on in files that were written since it had them."""
        if file.seen_bytes <= file.offset:
            _log.warning("log %s: %s was truncated, and is in no other file", self.name, file.name)
            self.truncated += 1
        elif self._rules.skips_missing:
            _log.warning("log %s: %r was truncated; what was not read of it is passed over", self.name, mark)
            self.lost += 1
        else:
            raise _missing(self._rules.directory / self.name, mark)
        self._after_ns = file.seen_ns

    def _behind(self, anchor: FollowedFile, entries: Sequence[Entry]) -> int:
        """Where the files begin that are newer than the anchor: by its inode, content, or time if it is gone."""
        for index, entry in enumerate(entries):
            if entry.identity == anchor.identity:
                anchor.name = entry.name
                return index + 1
        for index, entry in reversed(list(enumerate(entries))):
            if entry.is_gz and self._is_in(anchor, entry):
                return index + 1
        return _after(entries, anchor.content.modified_ns)

    def _is_among(self, file: FollowedFile, others: Sequence[FollowedFile], waiting: Sequence[Entry]) -> bool:
        """Whether one of the others has its content, or one that waits."""
        return any(_reads(self.name, partial(file.begins_like, each)) for each in others) or any(
            each.identity == file.identity or self._is_in(file, each) for each in reversed(waiting)
        )

    def _is_in(self, file: FollowedFile, entry: Entry) -> bool:
        """Whether another file has its content."""
        other = _opened(self._rules.directory, entry)
        if other is None:
            return False
        is_same = _reads(self.name, partial(file.begins_like, other))
        other.close()
        return is_same


def _after(entries: Sequence[Entry], after_ns: int) -> int:
    """Where the files begin that were written since then; the file that is written is one."""
    return next((i for i, each in enumerate(entries) if not each.suffix or each.modified_ns >= after_ns), len(entries))


def _missing(log: Path, mark: Mark) -> ConnectorError:
    remedy = (
        'put it back, plain or as .gz; or give FilesSource missing="skip", which passes over what was not read of it; '
        "to keep files longer, raise `rotate` of logrotate"
    )
    place = f"log {log}: the file that was read up to byte {mark.offset}"
    return ConnectorError(f"{place} (inode {mark.inode}, last as {mark.name}) is gone: {remedy}")


def _reads(log: str, question: Callable[[], bool]) -> bool:
    """An answer that needs the content of a rotated file; False if the file is damaged."""
    try:
        return question()
    except ConnectorError as error:
        _log.warning("log %s: %s", log, error)
        return False


def _opened(directory: Path, entry: Entry, *, even_empty: bool = True) -> FollowedFile | None:
    """The file at its begin. None if it has another name by now, or nothing and is not the one that is written."""
    try:
        file = FollowedFile(directory, entry)
    except FileNotFoundError:
        return None
    is_wanted = file.identity == entry.identity and (
        entry.is_gz or file.content.size() > 0 or (even_empty and not entry.suffix)
    )
    if not is_wanted:
        file.close()
        return None
    return file
