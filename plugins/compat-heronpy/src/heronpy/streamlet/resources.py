"""Cores and memory of a container."""

from __future__ import annotations

from heron_streamlet import Resources

__all__ = ["Resources"]
