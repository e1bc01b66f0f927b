"""Counts of a whole run, for what a pipeline may lose: late and failed elements."""

from __future__ import annotations

from heron.api import CountMetric

__all__ = ["TotalCount"]


class TotalCount(CountMetric):
    """A count since the start of the task. A `CountMetric` is 0 at the end of a run that did its work in one period."""

    def get_value_and_reset(self) -> int:
        """Return the count, which goes on."""
        return self.value
