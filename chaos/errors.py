"""The error that ends a chaos run early."""

from __future__ import annotations

__all__ = ["ChaosError"]


class ChaosError(Exception):
    """The run did not start, did not recover from a fault, or did not end."""
