"""The limits that detectors, resolvers and explanations share; `docs/health.md` has them in words.

Shares are of the time, unless a comment says something else.
"""

from __future__ import annotations

__all__ = [
    "BLOCKED",
    "BUSY",
    "GARBAGE",
    "GROWTH_BYTES_PER_S",
    "LATE",
    "MEMORY",
    "PRESSED",
    "QUIET_S",
    "REPORTED",
    "SKEW",
    "SLOW",
    "STEAL",
    "STILL_S",
    "WAITS",
]

BUSY = 0.85  # useful: a component of the right size has the rest to spare
BLOCKED = 0.6
WAITS = 0.25  # for a processor
GARBAGE = 0.2
LATE = 0.25  # the timer of a stream manager
PRESSED = 0.6  # threads of a host wait for a processor
STEAL = 0.1
MEMORY = 0.9  # of the limit
SKEW = 1.5  # times the mean of what is routed to a task
SLOW = 0.6  # of the true rate of the other tasks
GROWTH_BYTES_PER_S = 1e6  # of memory
STILL_S = 10.0  # without a tuple
REPORTED = 0.5  # confidence: a diagnosis below it follows from another one, or explains nothing
QUIET_S = 3.0  # without a tuple, which some export periods may take
