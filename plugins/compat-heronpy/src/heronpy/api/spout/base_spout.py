"""The methods that a spout calls."""

from __future__ import annotations

from heron.api.spout import BaseSpout

__all__ = ["BaseSpout"]
