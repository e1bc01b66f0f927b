"""Failures of authors' functions in one task: all are counted, the first ones are shown."""

from __future__ import annotations

import traceback

from heron_engine_spark.parcels import Counts, Failure

__all__ = ["Failures"]

_SHOWN_AT_MOST = 20


class Failures:
    """The failed elements of a task."""

    def __init__(self) -> None:
        self._count = 0
        self._shown: dict[str, Failure] = {}

    def add(self, error: Exception) -> None:
        """Count a failure; the element is skipped, as on Heron."""
        self._count += 1
        if len(self._shown) < _SHOWN_AT_MOST:
            message = str(error)
            self._shown.setdefault(message, Failure(message, "".join(traceback.format_exception(error))))

    def counts(self, late: int) -> Counts:
        """What is reported to the driver."""
        return Counts(late, self._count, tuple(self._shown.values()))
