"""What a running component may ask."""

from __future__ import annotations

from heron.api.context import TopologyContext

__all__ = ["TopologyContext"]
