"""A key and a window."""

from __future__ import annotations

from heron_streamlet import KeyedWindow

__all__ = ["KeyedWindow"]
