"""One start of a container, as the driver's desk keeps it.

       placed (hello)        up
ASKED ───────────────▶ PLACED ──▶ UP
  │                      │        │
  └──────────────────────┴────────┴── ended, its Spark job over, or silent ──▶ gone from the table
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

__all__ = ["ContainerStart", "StartPhase"]


class StartPhase(enum.Enum):
    """How far a start has come."""

    ASKED = "asked"
    PLACED = "placed"
    UP = "up"


@dataclass(slots=True)
class ContainerStart:
    """`ending` is why it is being ended, `cancel_at_s` when its Spark job is cancelled (monotonic s)."""

    container_id: int
    attempt: int
    ticket: str
    phase: StartPhase = StartPhase.ASKED
    peer: bytes = b""
    host: str = ""
    executor: str = ""
    heard_s: float = 0.0
    ending: str = ""
    cancel_at_s: float = float("inf")
