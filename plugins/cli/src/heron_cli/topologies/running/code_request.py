"""The request for new code in a running topology, which clients make and `heron_cli.launch.code` carries out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heron.ipc.documents.status import CodeStatus

__all__ = ["CodeRequest", "ShowPhase"]

ShowPhase = Callable[[CodeStatus, Sequence[str]], None]
"""Is called in each phase, and once more with the comparison of the canaries, a line for each component."""


@dataclass(frozen=True, slots=True)
class CodeRequest:
    """New code: FILE[:NAME] and its arguments, which are those of the running program if there are none.

    With `canary`, this share of the tasks (above 0, below 1) changes first, and is compared with the others for
    `canary_for_s`. With `dry_run` nothing changes.
    """

    target: str
    arguments: Sequence[str] = ()
    canary: float = 0.0
    canary_for_s: float = 60.0
    dry_run: bool = False
    on_phase: ShowPhase = lambda _status, _compared: None
