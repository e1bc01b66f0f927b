"""Counters that any code of a component may increment."""

from __future__ import annotations

from heron.api.global_metrics import incr, init, root_name, safe_incr

__all__ = ["incr", "init", "root_name", "safe_incr"]
