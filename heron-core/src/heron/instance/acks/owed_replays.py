"""The failed roots that a spout has still to emit again: the only reason to call `next_tuple` after `end`.

A spout emits a failed root again in its `fail`, or `fail` only queues it and a later `next_tuple` emits it. In the
second case an ending spout must be called, or the tuple is lost. It is called only as often as it owes replays, so
that a `next_tuple` which would make new tuples makes no endless ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

from heron.author_text import class_name, short_text

__all__ = ["OwedReplays"]

_COMPARABLE = frozenset({int, str, bytes, float})
_LONGEST_KEY = 400  # characters
_MOST_IDS = 65_536  # as many as a spout has in flight by default; roots beyond it are only counted


class OwedReplays:
    """Failed roots that `fail` did not emit again, by their ids. Pure; belongs to the holder of the emit lock.

    A spout may fail roots for years without a replay, so the number of ids is bounded. Roots beyond the bound stay
    counted until the spout is called without an emit: a call too many is harmless, a call too few loses a tuple.
    """

    def __init__(self, *, most_ids: int = _MOST_IDS) -> None:
        self._most_ids = most_ids
        self._ids: Counter[object] = Counter()
        self._count = 0

    def __len__(self) -> int:
        return self._count

    def fail(self, method: Callable[[object], object], tup_id: object, emitted: Callable[[], int]) -> None:
        """Calls the author's `fail`. The spout owes a replay unless that call emits something."""
        before = emitted()
        try:
            method(tup_id)
        finally:
            if emitted() == before:
                self._count += 1
                key = _key(tup_id)
                if key in self._ids or len(self._ids) < self._most_ids:
                    self._ids[key] += 1

    def owes(self, tup_id: object) -> bool:
        """Whether a root with this id is still to be emitted again."""
        return bool(self._ids) and _key(tup_id) in self._ids

    def opened(self, ids: Iterable[object]) -> None:
        """Roots with these ids were emitted."""
        for key in map(_key, ids):
            if left := self._ids.get(key, 0):
                self._count -= 1
                self._ids[key] = left - 1
                if left == 1:
                    del self._ids[key]

    def called(self, before: int, calls: int) -> None:
        """An ending spout owed `before` replays, and each of these calls of `next_tuple` has emitted something.

        If none of its tuples had the id of a failed root, the spout gives its replays other ids.
        """
        if self._count < before:
            return
        self._count = max(0, self._count - calls)
        if not self._count:
            self._ids.clear()

    def forget(self) -> None:
        """The spout was called and emits no replay, or it was constructed again."""
        self._count = 0
        self._ids.clear()


def _key(tup_id: object) -> object:
    """What an id is known by: ids may be lists, dicts or arrays, which cannot be hashed or compared."""
    if type(tup_id) in _COMPARABLE:
        return tup_id
    try:
        hash(tup_id)
        if tup_id == tup_id:  # noqa: PLR0124  # its class may refuse
            return tup_id
    except Exception:
        return f"{class_name(tup_id)} {short_text(tup_id, _LONGEST_KEY)}"
    return id(tup_id)
