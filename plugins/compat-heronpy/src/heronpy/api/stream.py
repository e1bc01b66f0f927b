"""Streams, and how they are divided among tasks."""

from __future__ import annotations

from heron.api.stream import Grouping, Stream

__all__ = ["Grouping", "Stream"]
