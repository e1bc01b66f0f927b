"""How a spout is described and emits."""

from __future__ import annotations

from heron.api.spout import BaseSpout

__all__ = ["BaseSpout"]
