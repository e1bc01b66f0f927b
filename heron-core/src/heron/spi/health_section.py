"""The section ``health`` of a profile: whether a health manager runs beside a topology, and what it may do."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

__all__ = ["ComponentBounds", "HealthSection"]

_Seconds = Annotated[float, msgspec.Meta(gt=0)]
_Number = Annotated[int, msgspec.Meta(ge=1)]


class ComponentBounds(msgspec.Struct, frozen=True):
    """The least and the greatest number of tasks that the health manager gives a component; None without a bound.

    Raises:
        ValueError: when the least number is above the greatest.
    """

    min: _Number = 1
    max: _Number | None = None

    def __post_init__(self) -> None:
        """Check both."""
        if self.max is not None and self.min > self.max:
            msg = f"min {self.min} is above max {self.max}"
            raise ValueError(msg)


class HealthSection(msgspec.Struct, frozen=True, kw_only=True):
    """All keys of the section but ``policies``, which names drivers.

    `mode` ``advise`` records what it would do; only ``act`` carries it out. `components` are bounds by component;
    components that a topology does not have are ignored. `cool_down_s` is the wait after an action, `effect_s` the
    longest wait for its effect, and `blacklist_s` the first wait before an action without effect is tried again; all
    are seconds of the wall clock. The topology never gets more than `max_containers` by itself. A diagnosis below
    `least_confidence` is only advised.
    """

    mode: Literal["off", "advise", "act"] = "advise"
    components: dict[str, ComponentBounds] = {}
    max_containers: _Number | None = None
    cool_down_s: _Seconds = 60.0
    effect_s: _Seconds = 120.0
    blacklist_s: _Seconds = 600.0
    least_confidence: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.7
