"""Log records that clients cause: one of a kind a minute, so that no client fills the log."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from heron.clock import Clock

__all__ = ["RepeatedRecords", "once_per_minute"]

_MINUTE_S = 60.0


class RepeatedRecords(logging.Filter):
    """Passes a record if none of its kind has passed for a minute; it says how many were left out since then.

    The kind is the message without its arguments, and the level.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._passed: dict[tuple[int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is logged; a logger calls it."""
        kind, now_s = (record.levelno, str(record.msg)), self._clock.monotonic_s()
        passed_s, left_out = self._passed.get(kind, (now_s - _MINUTE_S, 0))
        if now_s - passed_s < _MINUTE_S:
            self._passed[kind] = passed_s, left_out + 1
            return False
        self._passed[kind] = now_s, 0
        if left_out:
            record.msg = f"{kind[1].rstrip()} ({left_out} more since the last such line)"
        return True


@contextmanager
def once_per_minute(loggers: Sequence[str], clock: Clock) -> Iterator[None]:
    """Let these loggers pass one record of a kind a minute until the block ends."""
    repeated = RepeatedRecords(clock)
    for each in loggers:
        logging.getLogger(each).addFilter(repeated)
    try:
        yield
    finally:
        for each in loggers:
            logging.getLogger(each).removeFilter(repeated)
