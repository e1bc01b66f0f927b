"""Log records that clients cause: one of a kind a minute, so that no client fills the log."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from heron.clock import Clock

__all__ = ["RepeatedRecords", "once_per_minute"]

_MINUTE_S = 60.0
_MOST_KINDS = 100  # of this program and its libraries there are a few dozen
_NUMBER = re.compile(r"0x[0-9a-f]+|\d+")


class RepeatedRecords(logging.Filter):
    """Passes a record if none of its kind has passed for a minute; it says how many were left out since then.

    The kind is the level and the first line of the message, without its arguments and its numbers: asyncio writes the
    addresses of a connection into its messages. Kinds beyond 100 within a minute are one kind.
    """

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock
        self._passed: dict[tuple[int, str], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether the record is logged; a logger calls it."""
        now_s = self._clock.monotonic_s()
        kind = self._kind(record, now_s)
        passed_s, left_out = self._passed.get(kind, (now_s - _MINUTE_S, 0))
        if now_s - passed_s < _MINUTE_S:
            self._passed[kind] = passed_s, left_out + 1
            return False
        self._passed[kind] = now_s, 0
        if left_out:
            record.msg = f"{str(record.msg).rstrip()} ({left_out} more since the last such line)"
        return True

    def _kind(self, record: logging.LogRecord, now_s: float) -> tuple[int, str]:
        kind = record.levelno, _NUMBER.sub("#", str(record.msg).strip().partition("\n")[0][:200])
        if kind in self._passed or len(self._passed) < _MOST_KINDS:
            return kind
        self._passed = {each: passed for each, passed in self._passed.items() if now_s - passed[0] < _MINUTE_S}
        return kind if len(self._passed) < _MOST_KINDS else (record.levelno, "")


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
