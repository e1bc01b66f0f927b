"""First fit decreasing for Heron: large instances first, each into the first container that has room."""

from __future__ import annotations

from heron_packing_ffd.packing import FirstFitDecreasingPacking

__all__ = ["FirstFitDecreasingPacking"]
