"""The class that spouts derive from."""

from __future__ import annotations

from heron.api.spout import Spout

__all__ = ["Spout"]
