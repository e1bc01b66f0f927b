"""The loop of a spout task that sheds tuples (``topology.shed``): measures what is offered, and sets what is kept.

The decision about each row is in its generated emit (`heron.instance.output.generated_emit`), which calls
`heron.instance.output.stream_shedder`. Other spouts have `SpoutRunner` and pay nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import cast

from heron.api.plain_components import PlainSpout
from heron.api.shedding import Shedding, SheddingPolicy, shedding_of
from heron.api.spout import Spout
from heron.clock import monotonic_s
from heron.driver_kit.keep_controller import (
    PERIOD_S,
    KeepController,
    LatencyController,
    Offer,
    RateController,
)
from heron.driver_kit.signals import Signals
from heron.instance.metrics.task_time import TaskTime, TimeUse
from heron.instance.output.stream_shedder import StreamShedder, TaskShedding
from heron.instance.spout_runner import SpoutRunner
from heron.instance.task import Task
from heron.planner.physical_plan import PhysicalPlan
from heron.planner.shed_check import shed_streams
from heron.spi.metricsink import Metric

__all__ = ["SheddingSpoutRunner"]

_WAITS = (TimeUse.THROTTLED, TimeUse.ROOM, TimeUse.ACKS)
_SMOOTH_S = 1.0  # the pace of the last second
_WAITING_SHARE = 0.05
"""Without another measure of the delay: a spout that waits for this share of its time counts as at its target."""


class SheddingSpoutRunner(SpoutRunner):
    """Runs a spout that sheds."""

    def __init__(self, task: Task, signals: Signals, component_class: type) -> None:
        super().__init__(task, signals, component_class)
        hears_acks = component_class.ack is not Spout.ack or issubclass(component_class, PlainSpout)  # type: ignore[attr-defined]
        self._state = TaskShedding(hears_acks, self._roots.owed_replays.owes, self._look)
        self._delay = _SourceDelay(task, self.emitter.time)
        self._followed_s = monotonic_s()
        self._offered = 0
        self._shedding: Shedding | None = None
        self._controller: KeepController | None = None
        self._shedders: dict[str, StreamShedder] = {}
        self._set_shedding()
        task.metrics.shedding = self

    def work(self) -> None:
        """`ComponentRunner.work`."""
        now_s = monotonic_s()
        if self._controller is not None and now_s - self._followed_s >= PERIOD_S and not self._is_held_back():
            self._follow(self._controller, now_s)
        self._state.suspended = self._replays.is_due()  # this round emits replays alone
        super().work()
        if ids := self._state.ids:
            self._state.ids = []
            self._callbacks.shed(ids)

    def metrics(self) -> list[Metric]:
        """What was shed, by stream."""
        return [metric for name, each in self._shedders.items() for metric in each.metrics(name)]

    def _is_held_back(self) -> bool:
        """Whether back pressure hides what the source offers; only the target of a rate needs to know that."""
        by_rate = self._shedding is not None and self._shedding.rate_per_s is not None
        return by_rate and bool(self.task.gateway.throttle.culprits)

    def _set_shedding(self) -> None:
        """Follows the configuration; the routes must be applied behind it."""
        shedding = self._shedding = shedding_of(self.task.config)
        before, self._shedders = self._shedders, {}
        self._controller = None
        for stream in shed_streams(shedding, self.task.definition):
            assert shedding is not None  # noqa: S101  # there are no such streams without it
            made = StreamShedder(shedding, self._state, self.task.spec.task_id, self._priority_of)
            if stream.name in before:
                made.count = before[stream.name].count
            self._shedders[stream.name] = made
        if shedding is not None and self._shedders:
            self._controller = self._controller_of(shedding)
        self._spout_emitter.set_probability(1.0)
        self.emitter.shedders = self._shedders

    def _controller_of(self, shedding: Shedding) -> KeepController:
        if shedding.rate_per_s is not None:
            tasks = len(self.task.index.tasks_of(self.task.spec.component))
            return RateController(shedding.rate_per_s / max(1, tasks))
        return LatencyController(cast("float", shedding.latency_s))

    def _follow(self, controller: KeepController, now_s: float) -> None:
        elapsed_s, self._followed_s = now_s - self._followed_s, now_s
        offered = sum(self.emitter.emitted(name) + each.count for name, each in self._shedders.items())
        tuples, self._offered = max(0, offered - self._offered), offered
        delay_s = 0.0
        if (shedding := self._shedding) is not None and shedding.latency_s is not None:
            delay_s = self._delay.take(tuples, elapsed_s, shedding.latency_s)
        changed = controller.follow(Offer(tuples, elapsed_s, delay_s))
        for each in self._shedders.values():
            each.follow(controller.share)
        if changed and shedding is not None and shedding.policy is not SheddingPolicy.PRIORITY:
            self._spout_emitter.set_probability(controller.share)

    def _config_changed(self) -> None:
        super()._config_changed()
        if shedding_of(self.task.config) != self._shedding:
            self._set_shedding()
            self.apply_routes()
            self.specialise()

    def _switch_to(self, plan: PhysicalPlan) -> None:
        super()._switch_to(plan)
        if self._shedding is not None and self._shedding.rate_per_s is not None and self._controller is not None:
            share = self._controller.share
            self._controller = self._controller_of(self._shedding)  # the component may have other tasks now
            self._controller.share = share

    def _priority_of(self, values: object) -> object:
        return self._component.shed_priority(cast("Sequence[object]", values))

    def _look(self) -> None:
        self.emitter.overflowed = True

    def _call_fail(self, tup_id: object) -> None:
        """What `fail` emits are replays."""
        self._state.suspended = True
        try:
            super()._call_fail(tup_id)
        finally:
            self._state.suspended = False

    def _take_letters(self, ids: Collection[str], *, drop: bool) -> dict[str, str]:
        self._state.suspended = True
        try:
            return super()._take_letters(ids, drop=drop)
        finally:
            self._state.suspended = False

    def _emitted(self) -> int:
        """A call whose tuple is shed has emitted: the source has data."""
        return super()._emitted() + self._state.total

    def _size(self) -> Callable[[], int]:
        waiting, state = super()._size(), self._state
        if len(self.emitter.streams) > 1:
            return waiting
        return lambda: waiting() + state.total


class _SourceDelay:
    """How long a tuple waits, as far as a spout task can tell: the longest of what it measures.

    | measure | delay |
    |---|---|
    | at least once | the mean time from the flush of a root to the end of its tree, of roots that have ended |
    | `Spout.backlog` knows | what waits at the source, at the pace of the last second |
    | always | the share of time for which the spout waits, relative to `_WAITING_SHARE`, times the target |
    """

    def __init__(self, task: Task, time: TaskTime) -> None:
        self._task, self._time = task, time
        self._ended = (0, 0.0)
        self._waited_s = 0.0
        self._pace_per_s = 0.0
        self._tree_s = 0.0

    def take(self, tuples: int, elapsed_s: float, target_s: float) -> float:
        """The delay at the end of a period with this number of offered tuples, in seconds."""
        weight = min(1.0, elapsed_s / _SMOOTH_S)
        self._pace_per_s += (tuples / elapsed_s - self._pace_per_s) * weight
        latencies = self._task.metrics.complete_latency.value()
        ended, total_s = sum(latencies.counts), latencies.total
        if ended > self._ended[0]:
            self._tree_s = (total_s - self._ended[1]) / (ended - self._ended[0])
            self._ended = ended, total_s
        uses = self._time.uses()
        before_s, self._waited_s = self._waited_s, sum(uses[use] for use in _WAITS)
        waited = (self._waited_s - before_s) / elapsed_s
        backlog = self._task.metrics.backlog_tuples() or 0.0
        waiting_s = backlog / self._pace_per_s if self._pace_per_s > 0 else 0.0
        return max(self._tree_s, waiting_s, target_s * waited / _WAITING_SHARE)
