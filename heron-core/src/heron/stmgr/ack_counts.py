"""What a stream manager counts of its ledgers."""

from __future__ import annotations

from dataclasses import dataclass, field

from heron.ipc.tracking import Outcome

__all__ = ["AckCounts"]


@dataclass(slots=True)
class AckCounts:
    """Totals since the process began, in roots.

    `late_acks` and `late_fails` are about roots that are not in flight: settled, expired or lost before, or unknown.
    """

    settled: dict[Outcome, int] = field(default_factory=lambda: dict.fromkeys(Outcome, 0))
    late_acks: int = 0
    late_fails: int = 0
