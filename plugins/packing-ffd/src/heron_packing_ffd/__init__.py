"""The packing first fit decreasing: large instances first, each into the first container with room."""

from __future__ import annotations

from heron_packing_ffd.packing import FirstFitDecreasingPacking

__all__ = ["FirstFitDecreasingPacking"]
