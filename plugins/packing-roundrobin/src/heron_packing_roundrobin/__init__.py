"""Round-robin packing for Heron: instances are dealt to the containers in turn."""

from __future__ import annotations

from heron_packing_roundrobin.packing import RoundRobinPacking

__all__ = ["RoundRobinPacking"]
