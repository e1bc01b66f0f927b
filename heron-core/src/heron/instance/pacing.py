"""When a runner flushes, how long it waits, and how much user code it runs between two readings of the clock. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

from heron.api.api_constants import TOPOLOGY_MAX_SPOUT_PENDING, TOPOLOGY_TICK_TUPLE_FREQ_SECS
from heron.api.config import setting

__all__ = ["Backoff", "FlushPacer", "Linger", "RootQuota", "SliceSize", "SourceBacklog", "TickTimer"]

_FLUSH_DISTANCE_S = 0.0003  # between flushes of a trickle: without it, 100,000 tuples/s are as many frames
_SHARE_OF_BACKLOG = 0.25  # at most that much later does a tuple arrive because it waits for others
_LOOK_S = 0.1  # between two looks at the backlog of a source
_MOST_SLEEP = 0.1  # the share of the time that a spout with a backlog may have slept
_SLICE_S = 0.002  # how long `process` is called between two readings of the clock
_FIRST_SLICE = 8  # tuples
_LARGEST_SLICE = 4096
_DEFAULT_PENDING = 60_000  # roots; more gain nothing (measured)


class Linger:
    """How long what a task has emitted may wait for more: longer while its input or its source has a backlog.

    Behind a backlog each tuple has waited longer than that anyway, and small batches would cost all tasks downstream
    the time that they lack. How old the backlog is, is known without a clock per frame: at most as old as the moment
    when the input was last empty. `SourceBacklog` knows it for a spout. The task thread writes, the gateway reads.
    """

    def __init__(self, usual_s: float) -> None:
        self._usual_s = self._most_s = usual_s
        self._dry_s = math.inf

    def grow_to(self, most_s: float) -> None:
        """Lets the linger grow with the backlog, up to this."""
        self._most_s = max(self._usual_s, most_s)

    def ran_dry(self, now_s: float) -> None:
        """Notes that the input was empty until now; infinity: there is no backlog, whatever the time."""
        self._dry_s = now_s

    def at(self, now_s: float) -> float:
        """The linger at this time, in seconds."""
        return max(self._usual_s, min(self._most_s, _SHARE_OF_BACKLOG * (now_s - self._dry_s)))


class SourceBacklog:
    """Lets the linger of a spout grow while its source has more than the spout can emit.

    A spout has no input whose backlog is known, and a call of `next_tuple` that takes long may wait for its source or
    for a processor. So the system is asked how long the thread has run or was ready to run: if it slept for less than a
    tenth of the time, except for room or acks, then its tuples had waited in the source already. A call that emits
    nothing ends the backlog at once.
    """

    def __init__(self, linger: Linger) -> None:
        self._linger = linger
        self._dry_s = self._looked_s = math.inf
        self._awake_s = 0.0

    def ran_dry(self, now_s: float) -> None:
        """A call has emitted nothing."""
        self._dry_s = now_s
        self._linger.ran_dry(math.inf)

    def look_if_due(self, now_s: float, awake_s: Callable[[], float | None]) -> None:
        """Looks every 0.1 s; `awake_s` gives the seconds so far in which the thread had something to emit.

        It ran, was ready to run, or waited for room or acks. None if the system does not tell; then nothing grows.
        """
        elapsed_s = now_s - self._looked_s
        if 0 <= elapsed_s < _LOOK_S or (found_s := awake_s()) is None:
            return
        if elapsed_s >= 0 and found_s - self._awake_s >= (1 - _MOST_SLEEP) * elapsed_s:
            self._linger.ran_dry(self._dry_s)
        else:
            self.ran_dry(now_s)
        self._looked_s, self._awake_s = now_s, found_s


class FlushPacer:
    """The time since the last flush, against the linger and the shortest distance of two flushes.

    For the task thread, between calls of user code; within a call a timer of the gateway applies.
    """

    def __init__(self, linger: Linger) -> None:
        self._linger = linger
        self._last_s = 0.0

    def flushed(self, now_s: float) -> None:
        """Notes a flush."""
        self._last_s = now_s

    def start_waiting(self, now_s: float) -> None:
        """Notes that nothing waits yet: the linger of the next row begins now at the earliest."""
        self._last_s = max(self._last_s, now_s)

    def linger_is_over(self, now_s: float) -> bool:
        """Whether rows that wait must be flushed now."""
        return now_s - self._last_s >= self._linger.at(now_s)

    def idle_wait_s(self, now_s: float) -> float:
        """Seconds until a task without other work flushes; zero or less: now."""
        return _FLUSH_DISTANCE_S - (now_s - self._last_s)


class SliceSize:
    """How many tuples `process` gets between two readings of the clock.

    Ticks, flushes and metrics are thus in time, however slow `process` is.
    """

    def __init__(self) -> None:
        self.tuples = _FIRST_SLICE

    def adapt(self, size: int, took_s: float, *, cut: bool = False) -> bool:
        """Sets the size by the duration of the last slice; whether that slice was a long one.

        A slice that was `cut` for a traced tuple is no reason for short slices.
        """
        most = max(4 * size, self.tuples) if cut else 4 * size
        self.tuples = max(1, min(_LARGEST_SLICE, most, int(size * _SLICE_S / max(took_s, 1e-9))))
        return took_s > _SLICE_S


class Backoff:
    """A wait that doubles from a first to a longest value until it is reset, in seconds."""

    def __init__(self, first_s: float, longest_s: float) -> None:
        self._first_s = first_s
        self._longest_s = longest_s
        self.wait_s = first_s

    def take(self) -> float:
        """The present wait; the next one is twice as long."""
        wait_s = self.wait_s
        self.wait_s = min(2 * wait_s, self._longest_s)
        return wait_s

    def reset(self) -> None:
        """Begins with the first wait again."""
        self.wait_s = self._first_s


class TickTimer:
    """When a bolt with `topology.tick.tuple.freq.secs` gets its next tick; `next_s` is infinite without ticks."""

    def __init__(self, config: Mapping[str, object], clock: Callable[[], float]) -> None:
        period_s = config.get(TOPOLOGY_TICK_TUPLE_FREQ_SECS)
        self._period_s = float(period_s) if isinstance(period_s, int | float) else math.inf
        self._clock = clock
        self.next_s = clock() + self._period_s

    def is_due(self) -> bool:
        """Whether the tick is due."""
        return self._clock() >= self.next_s

    def restart(self) -> None:
        """Begins the next period, after a tick."""
        self.next_s = self._clock() + self._period_s


class RootQuota:
    """How many roots a spout task may have in flight, and whether few free places are worth waiting for more.

    A spout at its limit gets a few free places with each ack. If it used them at once, it would send a batch for each
    few acks, and every process behind it would pay for small batches. So it waits for the rows of a full flush, or a
    quarter of its limit, at most the linger.
    """

    def __init__(self, most: float, linger: Linger, clock: Callable[[], float]) -> None:
        self.most = most
        self._linger = linger
        self._clock = clock
        self._scarce_since_s = math.inf

    @classmethod
    def of(cls, config: Mapping[str, object], linger: Linger, clock: Callable[[], float]) -> RootQuota:
        """The quota of a spout with this configuration (`topology.max.spout.pending`)."""
        most = setting(config, TOPOLOGY_MAX_SPOUT_PENDING)
        return cls(most if isinstance(most, int) else _DEFAULT_PENDING, linger, clock)

    def must_wait(self, free: float, flush_rows: Callable[[], int]) -> bool:
        """Whether acks must free more places before the spout emits.

        `free` is the number of free places, `flush_rows` gives the number of rows that make a full flush.
        """
        if free <= 0:
            return True
        if free >= self.most / 4 or free >= flush_rows():
            self._scarce_since_s = math.inf
            return False
        now_s = self._clock()
        self._scarce_since_s = min(self._scarce_since_s, now_s)
        if now_s - self._scarce_since_s < self._linger.at(now_s):
            return True
        self._scarce_since_s = math.inf
        return False
