"""The error of this package."""

from __future__ import annotations

from heron.errors import HeronError

__all__ = ["TruthError"]


class TruthError(HeronError):
    """A trial that could not be made, so that it says nothing about the diagnoses."""
