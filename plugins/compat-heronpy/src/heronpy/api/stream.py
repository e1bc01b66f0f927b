"""Output streams, and the groupings that divide their tuples among tasks."""

from __future__ import annotations

from heron.api.stream import Grouping, Stream

__all__ = ["Grouping", "Stream"]
