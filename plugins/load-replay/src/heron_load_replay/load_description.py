"""What the file of a captured load says about itself. Without Arrow, which starts threads and takes long to import."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

__all__ = ["FORMAT", "LoadDescription", "SpoutLoad"]

FORMAT: Final = 1
"""It grows when an older reader would misread a file; other numbers are refused."""


@dataclass(frozen=True, slots=True)
class SpoutLoad:
    """What a spout has emitted: the fields of its streams, and the tuples of each of its tasks, by partition."""

    streams: dict[str, tuple[str, ...]]
    tuples: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class LoadDescription:
    """What a file holds. `kept` rows stand for the tuples; `after_limit` tuples are not in the file.

    `unkept` counts the tuples whose values could not be captured, by the reason; their rows have values of neighbours.
    """

    format: int
    topology: str
    began_at_s: float
    seconds: float
    shape: bool
    spouts: dict[str, SpoutLoad]
    kept: int = 0
    after_limit: int = 0
    unkept: dict[str, int] = field(default_factory=dict)

    @property
    def tuples(self) -> int:
        """The tuples of all spouts."""
        return sum(sum(each.tuples) for each in self.spouts.values())
