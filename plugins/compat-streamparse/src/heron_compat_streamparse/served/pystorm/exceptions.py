"""The error of a lost connection, which has no cause in an instance; programs may catch it."""

from __future__ import annotations

__all__ = ["StormWentAwayError"]


class StormWentAwayError(Exception):
    """Never raised here."""
