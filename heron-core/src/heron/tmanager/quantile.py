"""Quantiles of a histogram's buckets. Pure."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["quantile"]


def quantile(bounds: Sequence[float], counts: Sequence[int], share: float) -> float | None:
    """The value below which that share (0 to 1) of the entries lies; None when there are no entries.

    `bounds` are inclusive upper bounds, ascending; `counts` has one more, for what is above the last. Within a bucket
    entries count as evenly spread; above the last bound the last bound is all that is known.
    """
    wanted = share * sum(counts)
    if not wanted:
        return None
    lower = seen = 0.0
    for bound, count in zip(bounds, counts, strict=False):
        if seen + count >= wanted:
            return lower + (bound - lower) * (wanted - seen) / count
        seen += count
        lower = bound
    return lower
