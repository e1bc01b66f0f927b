"""Resource-compliant round robin for Heron: dealt in turn, to as many containers as the resources need."""

from __future__ import annotations

from heron_packing_rcrr.packing import ResourceCompliantPacking

__all__ = ["ResourceCompliantPacking"]
