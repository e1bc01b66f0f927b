"""A number that was computed from a sample, with its interval."""

from __future__ import annotations

import math

__all__ = ["Estimate"]

_SIGMAS = 1.959964  # of a normal distribution, on both sides of 95 %


class Estimate(float):
    """An estimated number. It is a float; sums and products of it are plain floats.

    The interval holds the exact number in 95 of 100 cases, if the sample has at least some dozens of elements. Without
    anything that was shed, it has the length 0.

    Attributes:
        variance: the estimated variance.
    """

    __slots__ = ("variance",)
    variance: float

    def __new__(cls, value: float, variance: float = 0.0) -> Estimate:
        """Make an estimate."""
        made = super().__new__(cls, value)
        made.variance = max(0.0, variance)
        return made

    @property
    def margin(self) -> float:
        """Half the length of the interval."""
        return _SIGMAS * math.sqrt(self.variance)

    @property
    def low(self) -> float:
        """The lower end of the interval."""
        return self - self.margin

    @property
    def high(self) -> float:
        """The upper end of the interval."""
        return self + self.margin

    def __repr__(self) -> str:
        return f"{float(self):.6g} ± {self.margin:.3g}" if self.variance else f"{float(self):.6g}"

    __str__ = __repr__

    def __reduce__(self) -> tuple[object, ...]:
        return Estimate, (float(self), self.variance)
