"""The dead letters of a run, in the files beside the logs of its tasks, on this machine."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from heron.errors import UsageError, known, nearest
from heron.ipc.documents.letter_line import LetterLine, read_line

__all__ = ["chosen_letters", "stored_letters"]

_FILES = "dead-letters-*.jsonl"


def stored_letters(folder: Path) -> tuple[LetterLine, ...]:
    """Return the letters in a log folder, the one that died first at the start.

    Raises:
        UsageError: when a file cannot be read.
    """
    found: list[LetterLine] = []
    for path in (*folder.glob(f"{_FILES}.1"), *folder.glob(_FILES)):
        try:
            lines = path.read_bytes().splitlines()
        except FileNotFoundError:  # the task has begun another part
            continue
        except OSError as error:
            msg = f"the dead letters in {path} cannot be read: {error.strerror}; ask the owner of the topology"
            raise UsageError(msg) from error
        found += [letter for line in lines if (letter := read_line(line)) is not None]
    return tuple(sorted(found, key=lambda each: each.failed_s))


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
