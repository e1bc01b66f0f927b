"""What ends a chaos run before its time."""

from __future__ import annotations

__all__ = ["ChaosError"]


class ChaosError(Exception):
    """The run did not start, did not come back from a fault, or did not end."""
