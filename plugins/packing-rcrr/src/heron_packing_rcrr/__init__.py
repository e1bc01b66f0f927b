"""The packing resource-compliant round robin: instances in turn over as many containers as their resources need."""

from __future__ import annotations

from heron_packing_rcrr.packing import ResourceCompliantPacking

__all__ = ["ResourceCompliantPacking"]
