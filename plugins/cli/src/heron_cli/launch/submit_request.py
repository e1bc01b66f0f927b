"""What ``heron submit`` was asked for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from heron_cli.launch.target import Target

__all__ = ["SubmitRequest"]


@dataclass(frozen=True, slots=True)
class SubmitRequest:
    """The options of one submission; `settings` are ``KEY=VALUE``."""

    target: Target
    config_path: Path | None
    settings: tuple[str, ...]
    dry_run: bool
    deactivated: bool
    as_json: bool
