"""Staged files and the log: each file is written once, whatever ends in between.

A file has the records of a checkpoint. Before its first record is written, a note beside it keeps the last transaction
id of the log. Ids count records, so the last id says after a death how many of the file's records are there, and the
rest follows. No record is ever taken back, so readers need no markers. Decision 105 has the cases.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Protocol

from heron.errors import ConnectorError
from heron_connector_dlog.errors import FencedError
from heron_streamlet.connectors.staging import StagedFile

__all__ = ["OrderedWriter", "discard", "discard_notes", "records_of", "write_file"]

_FILE, _NOTE = ".staged", ".begin"


class OrderedWriter(Protocol):
    """What writes a log; see `StreamWriter`."""

    def put(self, payload: bytes) -> None:
        """Write a record behind the others."""
        ...

    def flush(self) -> int:
        """Wait until all are there; returns the last transaction id."""
        ...

    def records(self, after: int, last: int) -> Iterator[bytes]:
        """What the log has behind one transaction id, up to another one."""
        ...


def records_of(file: StagedFile) -> Iterator[bytes]:
    """What a complete file has.

    Raises:
        FencedError: when another process has removed it.
        ConnectorError: when it is cut.
    """
    try:
        yield from file.messages()
    except FileNotFoundError as error:
        msg = f"{file.path} is gone: another process of this task has written it"
        raise FencedError(msg) from error


def write_file(file: StagedFile, writer: OrderedWriter) -> None:
    """Write what the log does not have of a file, and remove the file. After an error call it again.

    Raises:
        UnreachableError: when the logs do not answer.
        ConnectorError: when they refuse the records, or another program has written to the log in between.
    """
    note = file.path.with_suffix(_NOTE)
    last = writer.flush()
    begin = _noted(note)
    if begin is None:
        begin = last
        _write_note(note, begin)
    payloads = records_of(file)
    for number, written in enumerate(writer.records(begin, last), 1):
        if next(payloads, None) != written:
            msg = (
                f"{file.path}: record {begin + number} of the log is not the one of the file; another program has "
                "written to the log. Give the sink a log of its own"
            )
            raise ConnectorError(msg)
    for payload in payloads:
        writer.put(payload)
    writer.flush()
    discard(file)


def discard(file: StagedFile) -> None:
    """Remove a file, and then its note."""
    file.path.unlink(missing_ok=True)
    file.path.with_suffix(_NOTE).unlink(missing_ok=True)


def discard_notes(folder: Path, begin: str) -> None:
    """Remove the notes of files that are gone, whose names have this begin: a process was killed between both."""
    for note in folder.glob(f"{begin}*{_NOTE}"):
        if not note.with_suffix(_FILE).exists():
            note.unlink(missing_ok=True)


def _noted(note: Path) -> int | None:
    try:
        return int(note.read_text(encoding="ascii"))
    except FileNotFoundError:
        return None


def _write_note(note: Path, begin: int) -> None:
    """Complete and on disk, or not at all."""
    unfinished = note.with_name(f".{note.name}")
    with unfinished.open("w", encoding="ascii") as file:
        file.write(str(begin))
        file.flush()
        os.fsync(file.fileno())
    unfinished.replace(note)
    descriptor = os.open(note.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
