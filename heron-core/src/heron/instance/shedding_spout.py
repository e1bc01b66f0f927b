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
from heron.driver_kit.keep_controller import PERIOD_S, KeepController, LatencyController, RateController
from heron.driver_kit.signals import Signals
from heron.instance.metrics.source_meter import SourceCounts, SourceMeter
from heron.instance.output.stream_shedder import StreamShedder, TaskShedding
from heron.instance.spout_runner import SpoutRunner
from heron.instance.task import Task
from heron.planner.physical_plan import PhysicalPlan
from heron.planner.shed_check import shed_streams
from heron.spi.metricsink import Metric

__all__ = ["SheddingSpoutRunner"]


class SheddingSpoutRunner(SpoutRunner):
    """Runs a spout that sheds."""

    def __init__(self, task: Task, signals: Signals, component_class: type) -> None:
        super().__init__(task, signals, component_class)
        hears_acks = component_class.ack is not Spout.ack or issubclass(component_class, PlainSpout)  # type: ignore[attr-defined]
        self._state = TaskShedding(hears_acks, self._roots.owed_replays.owes, self._look)
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
        self._meter, self._followed_s = SourceMeter(self._counts()), monotonic_s()

    def _controller_of(self, shedding: Shedding) -> KeepController:
        if shedding.rate_per_s is not None:
            tasks = len(self.task.index.tasks_of(self.task.spec.component))
            return RateController(shedding.rate_per_s / max(1, tasks))
        return LatencyController(cast("float", shedding.latency_s))

    def _follow(self, controller: KeepController, now_s: float) -> None:
        elapsed_s, self._followed_s = now_s - self._followed_s, now_s
        shedding = self._shedding
        changed = controller.follow(self._meter.take(self._counts(), elapsed_s, self._target_s()))
        for each in self._shedders.values():
            each.follow(controller.share)
        if changed and shedding is not None and shedding.policy is not SheddingPolicy.PRIORITY:
            self._spout_emitter.set_probability(controller.share)

    def _target_s(self) -> float:
        """0 for a rate: it needs what is emitted, not what arrives or waits."""
        return (self._shedding.latency_s if self._shedding is not None else None) or 0.0

    def _counts(self) -> SourceCounts:
        metrics = self.task.metrics
        trees = metrics.complete_latency.value()
        return SourceCounts(
            kept=sum(map(self.emitter.emitted, self._shedders)),
            shed=sum(each.count for each in self._shedders.values()),
            in_flight=self._roots.in_flight,
            ended=sum(trees.counts),
            ended_s=trees.total,
            held_up_s=self.emitter.time.held_up_s(),
            backlog=metrics.backlog_tuples() if self._target_s() else None,
        )

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
