"""Streams and groupings."""

from __future__ import annotations

from heron_compat_streamparse.specs.stream import Grouping, Stream

__all__ = ["Grouping", "Stream"]
