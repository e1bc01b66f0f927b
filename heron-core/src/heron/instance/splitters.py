"""Which tasks of a consumer get which rows of a batch: one class per grouping. Pure.

A splitter divides the rows of one flush. Groupings by key have decided at the emit already (so that a key that cannot
be grouped by is refused there): the emit looks the key up in a bounded memo that gives the `append` of the list of its
task, and the flush only carries the rows to their lists.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Protocol

from heron.planner.key_group import key_group, owner

__all__ = ["ChosenSplitter", "KeyMemo", "KeySplitter", "PartialKeyMemo", "ShuffleSplitter", "Splitter"]

MEMO_LIMIT = 65_536
"""Keys a memo remembers before it begins anew: about 10 MB of short strings."""

Append = Callable[[object], None]


class Splitter(Protocol):
    """Divides the rows of a flush."""

    def split(self, rows: list[object]) -> Iterable[tuple[int, list[object]]]:
        """``(task id, rows)`` for each task that gets any, each row in the order of emission."""
        ...


class ShuffleSplitter:
    """Deals rows in turn; the first task changes with each flush, so that short flushes are spread too."""

    __slots__ = ("_next", "_tasks")

    def __init__(self, tasks: Sequence[int], start: int) -> None:
        self._tasks = tuple(tasks)
        self._next = start % len(self._tasks)

    def split(self, rows: list[object]) -> Iterable[tuple[int, list[object]]]:
        """`Splitter`."""
        count = len(self._tasks)
        first = self._next
        self._next = (first + len(rows)) % count
        for offset in range(min(count, len(rows))):
            yield self._tasks[(first + offset) % count], rows[offset::count]


class KeyMemo(dict[object, Append]):
    """Key to the `append` of its task's list; a key that is not there is computed, checked and remembered."""

    def __init__(self, tasks: Sequence[int], groups: int, *, single: bool) -> None:
        super().__init__()
        self._tasks = tuple(tasks)
        self._groups = groups
        self._single = single
        self.lists: dict[int, list[object]] = {task: [] for task in self._tasks}

    def place(self, key: object) -> Append:
        """What the look-up gives, for a key that cannot be looked up.

        Raises:
            EmitError: when it cannot be grouped by.
        """
        values = (key,) if self._single else key
        group = key_group(values, self._groups)  # type: ignore[arg-type]  # several fields: a tuple
        return self.lists[owner(group, self._groups, self._tasks)].append

    def __missing__(self, key: object) -> Append:
        append = self.place(key)
        if len(self) >= MEMO_LIMIT:
            self.clear()
        self[key] = append
        return append


class PartialKeyMemo:
    """Key to the less loaded of its two tasks (Nasir et al., ICDE 2015): load is what this one has sent."""

    def __init__(self, tasks: Sequence[int], groups: int, *, single: bool) -> None:
        self._tasks = tuple(tasks)
        self._groups = groups
        self._single = single
        self._pairs: dict[object, tuple[int, int]] = {}
        self._sent = dict.fromkeys(self._tasks, 0)
        self.lists: dict[int, list[object]] = {task: [] for task in self._tasks}

    def __getitem__(self, key: object) -> Append:
        pair = self._pairs.get(key)
        if pair is None:
            pair = self._pair(key)
            if len(self._pairs) >= MEMO_LIMIT:
                self._pairs.clear()
            self._pairs[key] = pair
        return self._lighter(pair)

    def place(self, key: object) -> Append:
        """As `KeyMemo.place`."""
        return self._lighter(self._pair(key))

    def _lighter(self, pair: tuple[int, int]) -> Append:
        first, second = pair
        task = first if self._sent[first] <= self._sent[second] else second
        self._sent[task] += 1
        return self.lists[task].append

    def _pair(self, key: object) -> tuple[int, int]:
        values: tuple[object, ...] = (key,) if self._single else key  # type: ignore[assignment]  # see KeyMemo
        first = owner(key_group(values, self._groups), self._groups, self._tasks)
        others = [task for task in self._tasks if task != first] or [first]
        return first, others[key_group((*values, "second choice"), len(others))]


class KeySplitter:
    """Carries rows to where their emit has decided."""

    __slots__ = ("memo", "picks")

    def __init__(self, memo: KeyMemo | PartialKeyMemo) -> None:
        self.memo = memo
        self.picks: list[Append] = []

    def split(self, rows: list[object]) -> Iterable[tuple[int, list[object]]]:
        """`Splitter`; the first `picks` are those of the rows."""
        for pick, row in zip(self.picks, rows, strict=False):
            pick(row)
        del self.picks[: len(rows)]
        for task, chosen in self.memo.lists.items():
            if chosen:
                yield task, chosen.copy()
                chosen.clear()


class ChosenSplitter:
    """Carries rows to tasks that were named at the emit (custom, direct); the first `picks` are those of the rows."""

    __slots__ = ("picks",)

    def __init__(self) -> None:
        self.picks: list[Sequence[int]] = []

    def split(self, rows: list[object]) -> Iterable[tuple[int, list[object]]]:
        """`Splitter`."""
        by_task: dict[int, list[object]] = {}
        for tasks, row in zip(self.picks, rows, strict=False):
            for task in tasks:
                by_task.setdefault(task, []).append(row)
        del self.picks[: len(rows)]
        return by_task.items()
