"""The driver's section of a profile."""

from __future__ import annotations

from heron.kernel.job.options import SupervisedOptions

__all__ = ["LocalOptions"]


class LocalOptions(SupervisedOptions, frozen=True):
    """`executor` is empty for this interpreter's executor."""
