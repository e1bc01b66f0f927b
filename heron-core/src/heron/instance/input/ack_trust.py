"""Whether the acks of a bolt are checked at their call: the first ones, and all after a wrong one.

A check costs a part of the time of an ack. Wrong acks are nearly always all of a component's, from the first one on.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from heron.errors import UsageError

__all__ = ["AckTrust"]

_TRUSTED_AFTER = 64  # acks and fails


class AckTrust:
    """Counts good acks; `specialise` replaces the methods of the component when the answer changes."""

    def __init__(self, specialise: Callable[[], None], report: Callable[[str, UsageError, str], None]) -> None:
        self._specialise = specialise
        self._report = report
        self._good: float = 0

    @property
    def trusts(self) -> bool:
        """Whether acks are not checked now."""
        return self._good >= _TRUSTED_AFTER

    def note(self, settled: int) -> None:
        """The task has `settled` acks and fails so far. They were good unless `wrong` was called."""
        if 0 <= self._good < _TRUSTED_AFTER <= settled:
            self._good = settled
            self._specialise()

    def wrong(self, error: UsageError) -> None:
        """Reports an ack or anchor of what was not received; from then on acks are checked at their call."""
        if self._good >= 0:
            self._good = -math.inf
            self._specialise()
        self._report("the component", error, "the task continues")
