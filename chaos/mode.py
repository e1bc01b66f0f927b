"""The guarantees of delivery that a chaos run can check."""

from __future__ import annotations

import enum

__all__ = ["Mode"]


class Mode(enum.Enum):
    """Each mode has its topology in `topology-files`, and its checks."""

    AT_LEAST_ONCE = "at-least-once"
    EFFECTIVELY_ONCE = "effectively-once"
