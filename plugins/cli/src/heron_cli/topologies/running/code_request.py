"""The request for new code in a running topology, which clients make and `heron_cli.launch.code` carries out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from heron.errors import UsageError
from heron.ipc.documents.status import CodeStatus

__all__ = ["CodeRequest", "ShowPhase", "parsed_share"]

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


def parsed_share(text: str) -> float:
    """Return the share of ``10%`` or ``0.1``.

    Raises:
        UsageError: when it is no number above 0 and below 1.
    """
    number = text.removesuffix("%")
    try:
        share = float(number) / (100.0 if number != text else 1.0)
    except ValueError:
        share = 0.0
    if not 0.0 < share < 1.0:
        msg = f"--canary {text!r:.80}: give a share of the tasks above 0% and below 100%, such as 10%"
        raise UsageError(msg)
    return share
