"""The dead letters of a run, in the files beside the logs of its tasks, on this machine."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from heron.errors import UsageError, known, nearest
from heron.ipc.documents.letter_line import LetterLine
from heron.kernel.dead_letter_file import letter_files

__all__ = ["chosen_letters", "drop_stored", "stored_letters"]


def stored_letters(folder: Path) -> tuple[LetterLine, ...]:
    """Return the letters in a log folder, the one that died first at the start.

    Raises:
        UsageError: when a file cannot be read.
    """
    found: list[LetterLine] = []
    for file in letter_files(folder):
        try:
            found += file.letters()
        except OSError as error:
            msg = f"the dead letters in {file.path} cannot be read: {error.strerror}; ask the owner of the topology"
            raise UsageError(msg) from error
    return tuple(sorted(found, key=lambda each: each.failed_s))


def drop_stored(folder: Path, ids: Collection[str]) -> dict[str, str]:
    """Remove letters of a run that has ended; return their ids, as a task answers.

    Raises:
        UsageError: when a file cannot be changed.
    """
    dropped: dict[str, str] = {}
    for file in letter_files(folder):
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
