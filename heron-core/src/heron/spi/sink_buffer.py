"""What a sink with a server keeps until the server takes it, for drivers of the family metricsink.

Oldest first and bounded: when there is no more room the oldest go, since the newest totals say most. After a failure
nothing is tried for a while, which doubles with each further failure. Not thread-safe: a sink has one thread.
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
"""After the first failure: a server that was only started again is back by then, or soon after."""

LONGEST_PAUSE_S = 5.0
"""Soon enough after an outage of hours, and no burden on a server that comes up."""

_PART_BYTES = 1024 * 1024  # what goes into one message: servers have limits of some megabytes
_DELIVERY_S = 5.0  # a flush may block for 10 s; the rest is for a last part that is slow


class SinkBuffer(Generic[T]):
    """Entries that wait for one server; an entry is what is sent, and lost, as a whole."""

    def __init__(self, server: str, limit_bytes: int, clock: Clock | None = None) -> None:
        """`server` is what errors call it: ``carbon at graphite:2003``."""
        self._server = server
        self._limit_bytes = limit_bytes
        self._clock = clock or SystemClock()
        self._waiting: deque[tuple[T, int]] = deque()
        self._waiting_bytes = 0
        self._pause_s = 0.0
        self._next_try_s = 0.0

    def __len__(self) -> int:
        """How many entries wait."""
        return len(self._waiting)

    def add(self, entry: T, size_bytes: int) -> None:
        """Keeps an entry.

        Raises:
            SinkError: when entries are lost: this one, which alone is above the limit (``too-large``), or the oldest,
                for which there was no more room (``unsent``).
        """
        if size_bytes > self._limit_bytes:
            msg = f"an entry of {size_bytes} bytes is above max_buffer_bytes, {self._limit_bytes} bytes; raise that"
            raise SinkError(msg, lost=1, reason="too-large")
        self._waiting.append((entry, size_bytes))
        self._waiting_bytes += size_bytes
        lost = 0
        while self._waiting_bytes > self._limit_bytes:
            self._waiting_bytes -= self._waiting.popleft()[1]
            lost += 1
        if lost:
            msg = (
                f"{self._server} has not taken what fills max_buffer_bytes, {self._limit_bytes} bytes: the oldest is "
                "dropped and counted; see that it answers, or raise that"
            )
            raise SinkError(msg, lost=lost, reason="unsent")

    def deliver(self, send: Callable[[Sequence[T]], None], most: int) -> None:
        """Gives all entries to `send`, oldest first; what it returns from has arrived.

        It gets at most `most` at a time, and about 1 MiB; a larger entry comes alone.

        Raises:
            SinkError: when `send` raises one, or it is too early to try again, or the time is over. What was not sent
                is kept; nothing is lost.
        """
        now_s = self._clock.monotonic_s()
        if not self._waiting:
            return
        if now_s < self._next_try_s:
            msg = f"{self._server} did not take what was sent: records are kept, and it is tried again soon"
            raise SinkError(msg)
        self._send_all(send, most, now_s + _DELIVERY_S)

    def deliver_at_last(self, send: Callable[[Sequence[T]], None], most: int) -> None:
        """The same without waiting for the time to try again, for the end.

        Raises:
            SinkError: when not everything was sent; what is left is lost (``closed``).
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
                msg = f"{self._server} is slow: it has not taken everything within {_DELIVERY_S:g} s; the rest is kept"
                raise SinkError(msg)


def _first(waiting: deque[tuple[T, int]], most: int) -> Iterator[T]:
    size = 0
    for entry, size_bytes in itertools.islice(waiting, most):
        size += size_bytes
        if size > max(size_bytes, _PART_BYTES):
            return
        yield entry
