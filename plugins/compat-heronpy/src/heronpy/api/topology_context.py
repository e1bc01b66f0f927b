"""The view that a running component has of itself and its topology."""

from __future__ import annotations

from heron.api.context import TopologyContext

__all__ = ["TopologyContext"]
