"""The time that a result belongs to."""

from __future__ import annotations

from heron_streamlet import Window

__all__ = ["Window"]
