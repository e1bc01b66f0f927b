"""What ``heron run`` was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

__all__ = ["RunRequest"]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The options of one run; `settings` are ``KEY=VALUE``.

    `started_s` is monotonic and `started_at_s` wall-clock, when the command began.
    """

    profile: str
    config_path: Path | None
    settings: tuple[str, ...]
    timeout_s: float | None
    report: Path | None
    simulate: bool
    started_s: float
    started_at_s: float
