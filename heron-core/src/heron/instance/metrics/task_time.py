"""Where the time of a task thread goes, and the rates that follow from it. Belongs to the task thread.

Each second of the thread has exactly one use. Nothing is measured per tuple: a clock is read around each call of the
author's code for a slice or batch of tuples, and around each sleep.

The *useful* time of a task is what remains without its waits: the author's code and the engine's own work. A true rate
is tuples per second of useful time: the rate that the task would have if it never waited. Source: DS2 (OSDI 2018).
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable

from heron.clock import monotonic_s
from heron.ipc.documents.metric_names import SELECTIVITY, TASK_TIME, TRUE_RATE_IN, TRUE_RATE_OUT
from heron.ipc.process_metrics import cpu_wait_metrics
from heron.spi.metricsink import Metric, MetricKind

__all__ = ["TaskTime", "TimeUse"]

_LEAST_USEFUL_S = 0.001  # of a period: below it, one preemption of the thread would decide the rate


class TimeUse(enum.Enum):
    """The uses of a task's time; the values are labels of the metric."""

    USER_CPU = "user-cpu"
    """The author's code runs."""
    USER_BLOCKED = "user-blocked"
    """The author's code has not returned and does not run: it sleeps, waits for a service, a lock or a processor."""
    ENGINE = "engine"
    """Everything else: decoding, encoding, commands, and the start of the component."""
    INPUT = "input"
    """Waits for tuples; in a spout also calls of `next_tuple` that emit nothing."""
    ROOM = "room"
    """Waits until its output has room, also within an emit."""
    THROTTLED = "throttled"
    """Back pressure stops the spout."""
    ACKS = "acks"
    """The spout has as many tuples in flight as it may have."""
    PAUSED = "paused"
    """The topology is paused, the task has ended, or an update still prepares it."""


_USEFUL = (TimeUse.USER_CPU, TimeUse.USER_BLOCKED, TimeUse.ENGINE)
_HELD_UP = (TimeUse.ROOM, TimeUse.THROTTLED, TimeUse.ACKS)
_OF_BOLTS = (*_USEFUL, TimeUse.INPUT, TimeUse.ROOM, TimeUse.PAUSED)


class TaskTime:
    """Adds up the time of one task thread, from its construction on.

    `clock` gives monotonic seconds; `cpu_clock` gives the processor seconds of the calling thread.
    """

    __slots__ = (
        "_before",
        "_clock",
        "_cpu_clock",
        "_cpu_since_s",
        "_last_cpu_s",
        "_last_s",
        "_since_s",
        "_start_s",
        "_user_cpu_s",
        "_user_s",
        "_waited_s",
    )

    def __init__(
        self, clock: Callable[[], float] = monotonic_s, cpu_clock: Callable[[], float] = time.thread_time
    ) -> None:
        self._clock = clock
        self._cpu_clock = cpu_clock
        self._start_s = clock()
        self._since_s = self._cpu_since_s = 0.0
        self._last_s = self._last_cpu_s = 0.0
        self._user_s = self._user_cpu_s = 0.0
        self._waited_s = dict.fromkeys(TimeUse, 0.0)
        self._before = (0.0, 0, 0)  # useful seconds, tuples in, tuples out at the last call of `metrics`

    def enter_user(self) -> None:
        """The author's code begins."""
        self._cpu_since_s = self._cpu_clock()
        self._since_s = self._clock()

    def leave_user(self) -> None:
        """The author's code has returned."""
        took_s = self._last_s = self._clock() - self._since_s
        cpu_s = self._last_cpu_s = min(took_s, self._cpu_clock() - self._cpu_since_s)
        self._user_s += took_s
        self._user_cpu_s += cpu_s

    def emitted_nothing(self) -> None:
        """The last call of the author's code only looked for tuples: it counts as a wait for input."""
        self._user_s -= self._last_s
        self._user_cpu_s -= self._last_cpu_s
        self._waited_s[TimeUse.INPUT] += self._last_s
        self._last_s = self._last_cpu_s = 0.0

    def waited(self, use: TimeUse, slept_s: float) -> None:
        """The thread has slept outside the author's code."""
        self._waited_s[use] += slept_s

    def waited_for_room_in_emit(self, slept_s: float) -> None:
        """An emit has slept, within the author's code, until there was room."""
        self._since_s += slept_s
        self._waited_s[TimeUse.ROOM] += slept_s

    def held_up_s(self) -> float:
        """Seconds in which a spout could not emit what it had: it waited for room or acks, or was throttled."""
        return sum(map(self._waited_s.__getitem__, _HELD_UP))

    def uses(self) -> dict[TimeUse, float]:
        """Seconds by use; their sum is the age of the task."""
        uses = dict(self._waited_s)
        uses[TimeUse.USER_CPU] = self._user_cpu_s
        uses[TimeUse.USER_BLOCKED] = self._user_s - self._user_cpu_s
        uses[TimeUse.ENGINE] = max(0.0, self._clock() - self._start_s - self._user_s - sum(self._waited_s.values()))
        return uses

    def metrics(self, tuples_in: int | None, tuples_out: int) -> list[Metric]:
        """The seconds of each use, and the true rates since the last call; `tuples_in` is None for a spout.

        The tuples are totals. A rate is missing where the task had no tuples, or hardly any useful time.
        """
        uses = self.uses()
        of_kind = uses if tuples_in is None else {use: uses[use] for use in _OF_BOLTS}
        metrics = [
            Metric(TASK_TIME, MetricKind.COUNTER, "s", seconds, {"use": use.value}) for use, seconds in of_kind.items()
        ]
        useful_s = sum(uses[use] for use in _USEFUL)
        metrics += self._rates(useful_s, tuples_in, tuples_out)
        return metrics + cpu_wait_metrics()

    def _rates(self, useful_s: float, tuples_in: int | None, tuples_out: int) -> list[Metric]:
        before_s, before_in, before_out = self._before
        self._before = useful_s, tuples_in or 0, tuples_out
        passed_s, came, went = useful_s - before_s, (tuples_in or 0) - before_in, tuples_out - before_out
        if passed_s < _LEAST_USEFUL_S or (came <= 0 and went <= 0):
            return []
        metrics = [Metric(TRUE_RATE_OUT, MetricKind.GAUGE, "tuples/s", max(0, went) / passed_s)]
        if came > 0:
            metrics.append(Metric(TRUE_RATE_IN, MetricKind.GAUGE, "tuples/s", came / passed_s))
            metrics.append(Metric(SELECTIVITY, MetricKind.GAUGE, "1", max(0, went) / came))
        return metrics
