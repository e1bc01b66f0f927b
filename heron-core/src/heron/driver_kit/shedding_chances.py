"""The policies of shedding: a number from 0 to 1 for each row. A row is kept if its number is below the kept share."""

from __future__ import annotations

import random
from bisect import bisect_left, bisect_right
from collections import deque
from collections.abc import Callable

from heron.author_text import number_or_class
from heron.errors import EmitError
from heron.planner.key_group import key_position

__all__ = ["KeyChances", "PriorityChances", "uniform_chances"]

_MOST_KEYS = 65_536
_RECENT = 1024  # priorities that are compared with
_BELOW_ONE = 1.0 - 2**-53


def uniform_chances(task_id: int) -> Callable[[], float]:
    """Numbers without a relation to the rows, always the same for one task."""
    return random.Random(task_id).random  # noqa: S311  # a sample, no secret


class KeyChances(dict[object, float]):
    """The position of each key: all rows of a key have one number, and so has the key in each task."""

    def __init__(self, *, single: bool) -> None:
        super().__init__()
        self._single = single

    def __call__(self, key: object) -> float:
        """The number of a row with this key.

        Raises:
            EmitError: when rows cannot be grouped by this key.
        """
        try:
            return self[key]
        except TypeError:  # it cannot be hashed
            return self._position(key)

    def __missing__(self, key: object) -> float:
        position = self._position(key)
        if len(self) >= _MOST_KEYS:
            self.clear()
        self[key] = position
        return position

    def _position(self, key: object) -> float:
        return key_position((key,) if self._single else key)  # type: ignore[arg-type]  # of several fields: a tuple


class PriorityChances:
    """The rank of a row among the recent ones: 0 for the highest priority; rows of one priority share a range.

    `of_last` is the probability with which the last row was kept: 1 above the priority at which the share ends, less
    than 1 at that priority. `priority_of` gives the priority of what `__call__` gets.
    """

    def __init__(self, priority_of: Callable[[object], object], chance: Callable[[], float]) -> None:
        self.of_last = 1.0
        self.share = 1.0
        self._priority_of = priority_of
        self._chance = chance
        self._recent: deque[float] = deque(maxlen=_RECENT)
        self._ranked: list[float] = []  # negative, so that the highest priority is the first

    def __call__(self, given: object) -> float:
        """The number of a row.

        Raises:
            EmitError: when its priority is not a number.
        """
        priority = self._priority_of(given)
        if not isinstance(priority, int | float) or priority != priority:  # noqa: PLR0124  # not NaN
            msg = f"the priority of a tuple, {number_or_class(priority)}, is not a number"
            raise EmitError(msg)
        self._recent.append(-priority)
        ranked = self._ranked
        if not ranked:
            return 0.0
        above, until = bisect_left(ranked, -priority) / len(ranked), bisect_right(ranked, -priority) / len(ranked)
        if until > above:
            probability = min(1.0, max(0.0, (self.share - above) / (until - above)))
        else:
            probability = 1.0 if above < self.share else 0.0
        self.of_last = probability or 1.0  # it is kept with 0 only as a replay
        return min(above + (until - above) * self._chance(), _BELOW_ONE)

    def follow(self, share: float) -> None:
        """The share of the next period; the priorities of the last rows are ranked anew."""
        self.share = share
        self._ranked = sorted(self._recent)
