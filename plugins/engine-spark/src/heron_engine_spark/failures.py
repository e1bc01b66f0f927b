"""Failures of authors' functions in one task: all are counted, the first ones are shown."""

from __future__ import annotations

import traceback

from heron_engine_spark.parcels import Counts, Failure
from heron_streamlet.failures import OperatorError, author_place

__all__ = ["Failures"]

_SHOWN_AT_MOST = 200  # as in a task of Heron


class Failures:
    """The failed elements and windows of a task."""

    def __init__(self) -> None:
        self._count = 0
        self._shown: dict[tuple[str, str], Failure] = {}

    def add(self, error: OperatorError) -> None:
        """Count a failure; the element is skipped, as on Heron. The first of each operator and line is shown."""
        self._count += error.count
        place = error.place or author_place(error.__traceback__) or str(error)
        if (error.part, place) not in self._shown and len(self._shown) < _SHOWN_AT_MOST:
            trace = "".join(traceback.format_exception(error)).rstrip()
            self._shown[error.part, place] = Failure(str(error), trace, error.part, place)

    def counts(self, late: int) -> Counts:
        """What is reported to the driver."""
        return Counts(late, self._count, tuple(self._shown.values()))
