"""The dead letters of a run, in the files beside the logs of its tasks, on this machine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

import msgspec

from heron.errors import UsageError, known, nearest
from heron.ipc.documents.letter_line import LetterLine
from heron.kernel.dead_letter_file import letter_files

__all__ = ["chosen_letters", "drop_stored", "letters_by_task", "stored_letters"]


def stored_letters(folder: Path) -> tuple[LetterLine, ...]:
    """Return the letters in a log folder, the one that died first at the start. Their values are text only.

    Raises:
        UsageError: when a file cannot be read.
    """
    found = {each.id: each for letters in letters_by_task(folder).values() for each in letters}
    return tuple(sorted(found.values(), key=lambda each: each.failed_s))


def letters_by_task(folder: Path) -> dict[int, tuple[LetterLine, ...]]:
    """Return the letters by the task that keeps them. After an update it may be another one than their ids begin with.

    Raises: as `stored_letters`.
    """
    found: dict[int, tuple[LetterLine, ...]] = {}
    for file in letter_files(folder):
        try:
            found[file.task_id] = tuple(msgspec.structs.replace(each, payload=b"") for each in file.letters())
        except OSError as error:
            msg = f"the dead letters in {file.path} cannot be read: {error.strerror}; ask the owner of the topology"
            raise UsageError(msg) from error
    return found


def drop_stored(folder: Path, ids: Collection[str], task_id: int | None = None) -> dict[str, str]:
    """Remove letters of one task or all tasks, which do not run any more; return their ids, as a task answers.

    Raises:
        UsageError: when a file cannot be changed.
    """
    dropped: dict[str, str] = {}
    for file in letter_files(folder):
        if task_id not in {None, file.task_id}:
            continue
        try:
            dropped |= {each.id: "" for each in file.take(ids)}
        except OSError as error:
            msg = f"the dead letters in {file.path} cannot be changed: {error.strerror}; ask the owner of the topology"
            raise UsageError(msg) from error
    return dropped


def chosen_letters(letters: Sequence[LetterLine], ids: Sequence[str]) -> tuple[LetterLine, ...]:
    """Return the letters with these ids, in the order of the ids.

    Raises:
        UsageError: when there is no letter with an id; names the nearest one.
    """
    by_id = {each.id: each for each in letters}
    for each in ids:
        if each not in by_id:
            msg = f"there is no dead letter {each!r}{nearest(each, by_id)}; there are {known(list(by_id)[:10])}"
            raise UsageError(msg)
    return tuple(by_id[each] for each in ids)
