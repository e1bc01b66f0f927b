"""A bounded buffer for sinks that send records to a server.

The buffer sends the oldest entries first. When it is full it drops the oldest entries, because the newest totals are
the most useful. After a failure it waits before the next attempt; the wait doubles with each further failure. Not
thread-safe: a sink has one thread.
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Generic, TypeVar

from heron.clock import Clock, SystemClock
from heron.errors import SinkError

__all__ = ["FIRST_PAUSE_S", "LONGEST_PAUSE_S", "SinkBuffer"]

T = TypeVar("T")

FIRST_PAUSE_S = 0.25
"""The wait after the first failure; a server that was restarted is back by then or soon after."""

LONGEST_PAUSE_S = 5.0
"""The longest wait: short enough after a long outage, and no burden on a server that starts."""

_PART_BYTES = 1024 * 1024  # of one message; servers have limits of some megabytes
_DELIVERY_S = 5.0  # a flush may block for 10 s; the rest is for a slow last part


class SinkBuffer(Generic[T]):
    """Entries that wait for one server. An entry is sent, or lost, as a whole."""

    def __init__(self, server: str, limit_bytes: int, clock: Clock | None = None) -> None:
        """`server` is its name in errors: ``carbon at graphite:2003``."""
        self._server = server
        self._limit_bytes = limit_bytes
        self._clock = clock or SystemClock()
        self._waiting: deque[tuple[T, int]] = deque()
        self._waiting_bytes = 0
        self._pause_s = 0.0
        self._next_try_s = 0.0

    def __len__(self) -> int:
        """The number of waiting entries."""
        return len(self._waiting)

    def add(self, entry: T, size_bytes: int) -> None:
        """Add an entry.

        Raises:
            SinkError: when entries are lost: this entry, because it exceeds the limit by itself (``too-large``), or the
                oldest entries, because the buffer is full (``unsent``).
        """
        if size_bytes > self._limit_bytes:
            limit = f"max_buffer_bytes, {self._limit_bytes} bytes"
            msg = f"an entry of {size_bytes} bytes is larger than {limit}; raise max_buffer_bytes"
            raise SinkError(msg, lost=1, reason="too-large")
        self._waiting.append((entry, size_bytes))
        self._waiting_bytes += size_bytes
        lost = 0
        while self._waiting_bytes > self._limit_bytes:
            self._waiting_bytes -= self._waiting.popleft()[1]
            lost += 1
        if lost:
            msg = (
                f"{self._server} does not accept records and the buffer is full (max_buffer_bytes, {self._limit_bytes} "
                "bytes): the oldest entries are dropped and counted; check the server, or raise max_buffer_bytes"
            )
            raise SinkError(msg, lost=lost, reason="unsent")

    def deliver(self, send: Callable[[Sequence[T]], None], most: int) -> None:
        """Pass all entries to `send`, oldest first. Entries count as sent when `send` returns.

        One call of `send` gets at most `most` entries and about 1 MiB; a larger entry is sent alone.

        Raises:
            SinkError: when `send` raises it, when the wait after a failure is not over, or after 5 s. Unsent entries
                are kept; nothing is lost.
        """
        now_s = self._clock.monotonic_s()
        if not self._waiting:
            return
        if now_s < self._next_try_s:
            msg = f"{self._server} did not accept records: they are kept, and sent again soon"
            raise SinkError(msg)
        self._send_all(send, most, now_s + _DELIVERY_S)

    def deliver_at_last(self, send: Callable[[Sequence[T]], None], most: int) -> None:
        """Do the same at the end, without the wait after a failure.

        Raises:
            SinkError: when entries were not sent; they are lost (``closed``).
        """
        try:
            self._send_all(send, most, self._clock.monotonic_s() + _DELIVERY_S)
        except SinkError as error:
            lost = len(self._waiting)
            self._waiting.clear()
            self._waiting_bytes = 0
            msg = f"{error}; {lost} entries are lost"
            raise SinkError(msg, lost=lost, reason="closed") from error

    def _send_all(self, send: Callable[[Sequence[T]], None], most: int, end_s: float) -> None:
        while self._waiting:
            part = list(_first(self._waiting, most))
            try:
                send(part)
            except SinkError:
                self._pause_s = min(LONGEST_PAUSE_S, self._pause_s * 2 or FIRST_PAUSE_S)
                self._next_try_s = self._clock.monotonic_s() + self._pause_s
                raise
            self._pause_s = 0.0
            for _ in part:
                self._waiting_bytes -= self._waiting.popleft()[1]
            if self._waiting and self._clock.monotonic_s() > end_s:
                msg = f"{self._server} is slow: some records were not accepted within {_DELIVERY_S:g} s; they are kept"
                raise SinkError(msg)


def _first(waiting: deque[tuple[T, int]], most: int) -> Iterator[T]:
    size = 0
    for entry, size_bytes in itertools.islice(waiting, most):
        size += size_bytes
        if size > max(size_bytes, _PART_BYTES):
            return
        yield entry
