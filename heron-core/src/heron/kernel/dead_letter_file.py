"""The file of a task's dead letters: JSON lines, in two parts of bounded size, for their owner only."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import msgspec

from heron.driver_kit.private_files import write_private
from heron.ipc.documents.letter_line import LetterLine, read_line

__all__ = ["DeadLetterFile", "letter_files"]

_PREFIX = "dead-letters-"
_SUFFIX = ".jsonl"
_WRITTEN = b'{"written":'

_encode_lines = msgspec.json.Encoder().encode_lines


class DeadLetterFile:
    """Lines that are appended to `path`. A full part replaces the older one, ``.1``, whose letters count as dropped.

    While the task runs only the task writes. Lines that are broken stay: they may be of a task that was killed. A line
    that is no letter may say which checkpoint's letters are all in the file, or were (`append_once`).
    """

    def __init__(self, path: Path, most_bytes: int = 0) -> None:
        self.path = path
        self.older = path.with_name(f"{path.name}.1")
        self.dropped = 0
        self.appended = 0
        self.part_bytes = most_bytes // 2

    @classmethod
    def of_task(cls, log_dir: Path, task_id: int, most_bytes: int) -> DeadLetterFile:
        """The file of a task, beside its logs."""
        return cls(log_dir / f"{_PREFIX}{task_id}{_SUFFIX}", most_bytes)

    @property
    def task_id(self) -> int:
        """The task that writes the file."""
        return int(self.path.name.removeprefix(_PREFIX).removesuffix(_SUFFIX))

    def append(self, *letters: LetterLine) -> None:
        """Adds letters, and counts them in `appended`. To open the file takes as long as to encode ten.

        Raises:
            OSError: when they cannot be written; the first ones may have been.
        """
        lines = _encode_lines(letters)
        if len(letters) > 1 and len(lines) > self.part_bytes - self._size_bytes():
            middle = len(letters) // 2
            self.append(*letters[:middle])
            self.append(*letters[middle:])
        elif letters:
            self._write(lines)
            self.appended += len(letters)

    def append_once(self, letters: Sequence[LetterLine], checkpoint: int, *, search: bool) -> int:
        """Adds the letters of a checkpoint, and a line that says so; returns how many.

        With `search`, letters that the file has are left out: a task may have died while it wrote them.

        Raises:
            OSError: when they cannot be written.
        """
        if search and letters:
            stored = {each.id for each in self.letters()}
            letters = [each for each in letters if each.id not in stored]
        self._write(b"%s%s%d}\n" % (_encode_lines(letters), _WRITTEN, checkpoint))
        return len(letters)

    def last_checkpoint(self) -> int:
        """The newest checkpoint whose letters are written; 0 without one.

        Raises:
            OSError: when the file cannot be read.
        """
        marks = [
            line[len(_WRITTEN) : -1] for part in (self.older, self.path) for line in _lines(part) if _is_mark(line)
        ]
        return max((int(each) for each in marks if each.isdigit()), default=0)

    def adopt(self, task_id: int) -> None:
        """Takes over the file of a task that this one replaces, unless it has a file itself.

        Raises:
            OSError: when the file cannot be renamed.
        """
        former = DeadLetterFile.of_task(self.path.parent, task_id, 0)
        for its, own in ((former.older, self.older), (former.path, self.path)):
            if its.exists() and not own.exists():
                its.replace(own)

    def check_owner(self) -> None:
        """Checks that nobody else can have written the letters.

        Raises:
            OSError: when the file is of another user, or others can write it.
        """
        for part in (self.older, self.path):
            if part.exists():
                _check_owner(part)

    def size_of(self, letter: LetterLine) -> int:
        """The bytes that a letter takes in the file."""
        return len(_encode_lines([letter]))

    def _size_bytes(self) -> int:
        try:
            return os.stat(self.path).st_size  # `Path.stat` takes twice as long
        except FileNotFoundError:
            return 0

    def _write(self, lines: bytes) -> None:
        """Appends whole lines, behind a line that a killed task did not finish; all of them or none."""
        size_bytes = self._size_bytes()
        if size_bytes and size_bytes + len(lines) > self.part_bytes:
            if self.older.exists():
                with self.older.open("rb") as older:
                    self.dropped += sum(not each.startswith(_WRITTEN) for each in older)
                self.older.unlink()  # a file that replaces another one is written to the disk at once (ext4)
            self.path.rename(self.older)
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        with open(os.open(self.path, flags, 0o600), "r+b", buffering=0) as file:
            end = file.seek(0, os.SEEK_END)
            torn = end > 0 and os.pread(file.fileno(), 1, end - 1) != b"\n"
            data = memoryview(b"\n" + lines if torn else lines)
            try:
                while data:
                    data = data[file.write(data) :]
            except OSError:
                file.truncate(end)  # a disk that is full takes a part of a line
                raise

    def letters(self) -> Iterator[LetterLine]:
        """All letters, the oldest first.

        Raises:
            OSError: when the file cannot be read.
        """
        for part in (self.older, self.path):
            for line in _lines(part):
                if (letter := read_line(line)) is not None:
                    yield letter

    def take(self, ids: Collection[str]) -> list[LetterLine]:
        """Removes the letters with these ids, and returns those that there were.

        Raises: as `change`.
        """
        return self.change(dict.fromkeys(ids))

    def change(self, changes: Mapping[str, LetterLine | None]) -> list[LetterLine]:
        """Replaces letters by their ids, or removes them; returns those that there were.

        Raises:
            OSError: when the file cannot be read or written, or when others can write it; then no letter has changed.
        """
        before: list[LetterLine] = []
        former: list[tuple[Path, bytes]] = []
        for part in (self.older, self.path) if changes else ():
            lines = _lines(part)
            found, kept = list[LetterLine](), list[bytes]()
            for line in lines:
                letter = read_line(line)
                if letter is None or letter.id not in changes:
                    kept.append(line + b"\n")
                    continue
                found.append(letter)
                if (other := changes[letter.id]) is not None:
                    kept.append(_encode_lines([other]))
            if found:
                _check_owner(part)
                former.append((part, b"".join(line + b"\n" for line in lines)))
                try:
                    write_private(part, b"".join(kept))
                except OSError:
                    for changed, data in former[:-1]:
                        write_private(changed, data)
                    raise
                before += found
        return before


def letter_files(log_dir: Path) -> list[DeadLetterFile]:
    """The files of all tasks whose logs are in a folder."""
    names = {each.name.removesuffix(".1") for each in log_dir.glob(f"{_PREFIX}[0-9]*{_SUFFIX}*")}
    names = {each for each in names if each[len(_PREFIX) : -len(_SUFFIX)].isdecimal()}
    return [DeadLetterFile(log_dir / name) for name in sorted(names)]


def _is_mark(line: bytes) -> bool:
    return line.startswith(_WRITTEN) and line.endswith(b"}")


def _check_owner(part: Path) -> None:
    """Values are unpickled, so nobody else may have written them."""
    status = part.stat()
    if status.st_uid != os.geteuid() or status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        msg = f"others can write it: its mode is {stat.S_IMODE(status.st_mode):04o}; `chmod 600 {part}`"
        raise PermissionError(errno.EPERM, msg)


def _lines(part: Path) -> list[bytes]:
    try:
        return part.read_bytes().splitlines()
    except FileNotFoundError:
        return []
