"""The metrics that a child sends by name; each is registered when it is first seen.

Storm refuses a metric that nobody has registered. The kinds are decided by the first value: null or a number counts, an
object of numbers counts by key, and anything else is shown as it is.
"""

from __future__ import annotations

from collections.abc import Callable

from heron.api import AssignableMetrics, CountMetric, MultiCountMetric, TopologyContext
from heron.author_text import short_text
from heron.errors import UsageError

__all__ = ["ChildMetrics"]

_PERIOD_S = 10.0
_MOST = 1_000  # names; a name that has a value in it would fill the memory


class ChildMetrics:
    """The metrics of one task's child; they stay when the child is started again."""

    def __init__(self, context: TopologyContext) -> None:
        self._context = context
        self._updates: dict[str, Callable[[object], str]] = {}

    def update(self, name: object, value: object) -> str:
        """Update a metric; return why that is not possible, or an empty text."""
        if not isinstance(name, str) or not name:
            return f"the name {short_text(name)} is not a text"
        update = self._updates.get(name)
        if update is None:
            if len(self._updates) >= _MOST:
                return f"there are {_MOST} metrics already; use fewer names"
            try:
                update = self._updates[name] = self._register(name, value)
            except UsageError as error:
                return str(error)
        return update(value)

    def _register(self, name: str, value: object) -> Callable[[object], str]:
        if value is None or _is_number(value):
            count = CountMetric()
            self._context.register_metric(name, count, _PERIOD_S)
            return lambda new: _increment(count, name, new)
        if isinstance(value, dict):
            counts = MultiCountMetric()
            self._context.register_metric(name, counts, _PERIOD_S)
            return lambda new: _increment_all(counts, name, new)
        gauge = AssignableMetrics(value)
        self._context.register_metric(name, gauge, _PERIOD_S)

        def assign(new: object) -> str:
            gauge.update(new)
            return ""

        return assign


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _increment(count: CountMetric, name: str, new: object) -> str:
    if not (new is None or (isinstance(new, int | float) and not isinstance(new, bool))):
        return f"{name!r} counts, and {short_text(new)} is neither a number nor null"
    count.value += 1 if new is None else new  # type: ignore[assignment]  # fractions add up too
    return ""


def _increment_all(counts: MultiCountMetric, name: str, new: object) -> str:
    if not isinstance(new, dict):
        return f"{name!r} counts by key, and {short_text(new)} is not an object"
    for key, number in new.items():
        if not _is_number(number):
            return f"{name!r} counts by key, and {short_text(number)} is not a number"
        counts.incr(str(key), number)
    return ""
