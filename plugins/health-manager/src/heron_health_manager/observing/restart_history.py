"""The restarts of tasks in the last minutes, from counts that only grow."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping

__all__ = ["SPAN_S", "RestartHistory"]

SPAN_S = 600.0
"""A task in a loop is restarted once in the longest back-off, or later if it runs for a while before it dies."""


class RestartHistory:
    """What one observer has seen of a topology. Counts from before its first observation are of unknown age.

    If the topology itself is younger than `SPAN_S`, they are all recent.
    """

    def __init__(self) -> None:
        self._counts: Mapping[int, int] | None = None
        self._seen: deque[tuple[float, int, int]] = deque()

    def recent(self, counts: Mapping[int, int], at_s: float, age_s: float) -> Mapping[int, int]:
        """Return the restarts of each task in the last `SPAN_S` seconds; tasks without any are missing.

        `counts` are those of the status at `at_s`, in monotonic seconds; `age_s` is the age of the topology.
        """
        before = self._counts
        if before is None:
            before = {} if age_s <= SPAN_S else counts
        self._counts = counts
        for task, count in counts.items():
            if count > (known := before.get(task, 0)):
                self._seen.append((at_s, task, count - known))
        while self._seen and at_s - self._seen[0][0] > SPAN_S:
            self._seen.popleft()
        found: Counter[int] = Counter()
        for _, task, number in self._seen:
            found[task] += number
        return dict(found)
