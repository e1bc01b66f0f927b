"""The packing round robin: instances in turn over a given number of containers."""

from __future__ import annotations

from heron_packing_roundrobin.packing import RoundRobinPacking

__all__ = ["RoundRobinPacking"]
