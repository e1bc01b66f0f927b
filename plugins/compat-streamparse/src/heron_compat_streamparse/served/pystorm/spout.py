"""Spouts."""

from __future__ import annotations

from heron_compat_streamparse.components.spout import ReliableSpout, Spout

__all__ = ["ReliableSpout", "Spout"]
