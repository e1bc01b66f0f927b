"""Spouts."""

from __future__ import annotations

from heron_compat_streamparse.components.spout import JavaSpout, ReliableSpout, ShellSpout, Spout

__all__ = ["JavaSpout", "ReliableSpout", "ShellSpout", "Spout"]
