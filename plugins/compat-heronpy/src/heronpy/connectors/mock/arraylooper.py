"""A source that repeats the elements of an iterable."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle
from typing import Any

from heron.clock import monotonic_s
from heronpy.streamlet.context import Context
from heronpy.streamlet.generator import Generator

__all__ = ["ArrayLooper"]


class ArrayLooper(Generator):
    """Returns the elements of `user_iterable` again and again, with `sleep` seconds between two of them."""

    def __init__(self, user_iterable: Iterable[Any], sleep: float | None = None) -> None:
        super().__init__()
        self._elements = list(user_iterable)
        self._sleep_s = sleep or 0.0

    def setup(self, context: Context) -> None:  # type: ignore[override]  # the base class adapts it
        """Begin with the first element."""
        del context
        self._next = cycle(self._elements)
        self._due_s = monotonic_s()

    def get(self) -> Any:  # noqa: ANN401  # an element
        """Return the next element, or None before it is due: a wait would hold up everything else of the task."""
        if not self._elements or (self._sleep_s and monotonic_s() < self._due_s):
            return None
        self._due_s = monotonic_s() + self._sleep_s
        return next(self._next)
