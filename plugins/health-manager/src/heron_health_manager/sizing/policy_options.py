"""The options that the policies have in common."""

from __future__ import annotations

from typing import Annotated

import msgspec

from heron.spi.health_values import Rhythm
from heron_health_manager.sizing.sizing import Utilisation

__all__ = ["RhythmOptions", "SizingOptions"]


class RhythmOptions(msgspec.Struct, frozen=True):
    """How often a policy is asked, and how far back its observations reach."""

    period_s: Annotated[float, msgspec.Meta(gt=0)] = 5.0
    look_back_s: Annotated[float, msgspec.Meta(gt=0)] = 15.0

    def __post_init__(self) -> None:
        """Check what two options have to do with each other."""
        self.rhythm()

    def rhythm(self) -> Rhythm:
        """Return both."""
        return Rhythm(self.period_s, self.look_back_s)


class SizingOptions(RhythmOptions, frozen=True):
    """The share of its time that a task shall be useful, and that above which it is too busy."""

    wanted_utilisation: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.85
    most_utilisation: Annotated[float, msgspec.Meta(gt=0, le=1)] = 0.97

    def __post_init__(self) -> None:
        """Check what two options have to do with each other."""
        super().__post_init__()
        self.utilisation()

    def utilisation(self) -> Utilisation:
        """Return both."""
        return Utilisation(self.wanted_utilisation, self.most_utilisation)
