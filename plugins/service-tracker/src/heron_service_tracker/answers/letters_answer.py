"""The dead letters of a topology, as the tracker answers them. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

import msgspec

from heron_cli.client import LetterLine

__all__ = ["DeadLetterCount", "DeadLetterItem", "DeadLettersAnswer", "letters_answer", "shown_in"]


class DeadLetterCount(msgspec.Struct, frozen=True):
    """How many letters a component failed, of those that another component emitted; "" if their trees expired."""

    component: str
    source: str
    count: int


class DeadLetterItem(msgspec.Struct, frozen=True):
    """A letter; `heron.api.DeadLetter` has the meaning. `values` are text, and empty where tuples may not be shown."""

    id: str
    component: str
    task_id: int
    source: str
    stream: str
    values: tuple[str, ...]
    failures: int
    outcome: str
    error: str
    trace: str
    failed_s: float


class DeadLettersAnswer(msgspec.Struct, frozen=True):
    """The letters in the files of the tracker's machine: `total` of them, the newest in `items`."""

    counts: tuple[DeadLetterCount, ...]
    items: tuple[DeadLetterItem, ...]
    total: int
    age_s: float = 0.0
    error: str = ""


def letters_answer(letters: Sequence[LetterLine], most: int) -> DeadLettersAnswer:
    """Return the answer with at most `most` letters, the newest first."""
    counts = Counter((each.component, each.spout) for each in letters)
    newest = tuple(_item(each) for each in letters[: -most - 1 : -1])
    return DeadLettersAnswer(
        tuple(DeadLetterCount(*key, count) for key, count in counts.most_common()), newest, len(letters)
    )


def shown_in(answer: DeadLettersAnswer, limit: int, sources: Collection[str]) -> DeadLettersAnswer:
    """Return the answer with at most `limit` letters, and values only of these sources."""
    items = (
        each if each.source in sources else msgspec.structs.replace(each, values=()) for each in answer.items[:limit]
    )
    return msgspec.structs.replace(answer, items=tuple(items))


def _item(letter: LetterLine) -> DeadLetterItem:
    return DeadLetterItem(
        letter.id,
        letter.component,
        letter.task_id,
        letter.spout,
        letter.stream,
        letter.shown,
        letter.failures,
        letter.outcome,
        letter.error,
        letter.trace,
        letter.failed_s,
    )
