"""What ``heron run`` was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from heron.submit.overrides import Overrides

__all__ = ["RunRequest"]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The options of one run; `started_s` is monotonic and `started_at_s` wall-clock, when the command began."""

    profile: str
    config_path: Path | None
    overrides: Overrides
    timeout_s: float | None
    report: Path | None
    simulate: bool
    started_s: float
    started_at_s: float
