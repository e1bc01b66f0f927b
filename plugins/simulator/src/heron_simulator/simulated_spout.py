"""A spout's turn: acks and fails, a few calls of `next_tuple`, and the end."""

from __future__ import annotations

import math

from heron.api.api_constants import TOPOLOGY_MAX_SPOUT_PENDING
from heron.api.config import setting
from heron.api.spout import Spout
from heron.instance.emitter import SpoutEmitter
from heron.instance.hook_calls import SpoutHookCalls
from heron.instance.threadsafe import QueuedTarget
from heron.planner.physical_plan import TaskPlan
from heron_simulator.simulated_task import SimulatedTask, World
from heron_simulator.tracked_emitter import TrackedSpoutEmitter

__all__ = ["SimulatedSpout"]

_FIRST_BACKOFF_S = 0.1
_LAST_BACKOFF_S = 10.0


class SimulatedSpout(SimulatedTask):
    """Calls `next_tuple` up to `calls` times a turn, as long as it emits."""

    def __init__(self, world: World, plan: TaskPlan, calls: int) -> None:
        super().__init__(world, plan)
        ledger = world.ledger
        self._emitter = (
            TrackedSpoutEmitter(self.origin(), self.outbox, ledger)
            if ledger
            else SpoutEmitter(self.origin(), self.outbox)
        )
        self._component = Spout()
        self._calls = calls
        self._max_pending = int(str(setting(self.config, TOPOLOGY_MAX_SPOUT_PENDING)))
        self._ids: list[object] | None = None
        self._backoff_s = _FIRST_BACKOFF_S
        self._retry_s = -math.inf
        self._quiet = False

    @property
    def component(self) -> Spout:
        """`SimulatedTask.component`."""
        return self._component

    @property
    def emitter(self) -> SpoutEmitter:
        """`SimulatedTask.emitter`."""
        return self._emitter

    def construct(self, component_class: type, target: QueuedTarget) -> None:
        """`SimulatedTask.construct`."""
        self._component = component_class(delegate=self._emitter)
        target.emit, target.end = self._component.emit, self._component.end
        # As on processes: at most once, a tuple is done with when it is emitted, and only who overrides `ack` is told.
        overridden = component_class.ack is not Spout.ack  # type: ignore[attr-defined]  # a spout's class
        self._ids = [] if overridden and self.world.ledger is None else None

    def set_streams(self, ids: list[object] | None = None) -> None:
        """`SimulatedTask.set_streams`."""
        super().set_streams(ids=self._ids)

    def due_s(self) -> float:
        """`SimulatedTask.due_s`."""
        return self._retry_s if not self.ended and self._retry_s > self.world.clock.monotonic_s() else math.inf

    def work(self) -> bool:
        """`SimulatedTask.work`."""
        if self.ended:
            return False
        told = self._tell_outcomes()
        self._quiet = self._quiet and not told
        if self.world.clock.monotonic_s() >= self._retry_s:
            for _ in range(self._calls):
                if not self._has_room() or not self._call():
                    break
        self.emitter.flush()
        self._tell_ids()
        if self._emitter.ending and self._is_done():
            self.end()
            return True
        return told

    def _call(self) -> bool:
        """Calls `next_tuple` once; whether to call it again."""
        before = self.emitted()
        try:
            self._component.next_tuple()
        except Exception as error:
            self._retry_s = self.world.clock.monotonic_s() + self._backoff_s
            self.user_failed("next_tuple", error, f"it is called again after {self._backoff_s:g} s")
            self._backoff_s = min(2 * self._backoff_s, _LAST_BACKOFF_S)
            return False
        self._backoff_s = _FIRST_BACKOFF_S
        self._quiet = self.emitted() == before
        return not self._quiet

    def _has_room(self) -> bool:
        ledger = self.world.ledger
        return ledger is None or ledger.in_flight(self.plan.task_id) < self._max_pending

    def _is_done(self) -> bool:
        """At least once: when no tree is in flight, nothing is left to tell, and a call since then emitted nothing."""
        ledger = self.world.ledger
        if ledger is None:
            return True
        return self._quiet and not ledger.in_flight(self.plan.task_id) and not ledger.has_outcomes(self.plan.task_id)

    def _tell_outcomes(self) -> bool:
        ledger = self.world.ledger
        outcomes = ledger.take_outcomes(self.plan.task_id) if ledger is not None else []
        for each in outcomes:
            doing, action = ("ack", self._component.ack) if each.complete else ("fail", self._component.fail)
            hooks = self._hook_calls()
            try:
                action(each.tup_id)
                (hooks.acked if each.complete else hooks.failed)(each.tup_id, each.latency_s)
            except Exception as error:
                self.user_failed(doing, error, "the task goes on", each.tup_id)
            self.metrics.acked += each.complete
            self.metrics.failed += not each.complete
        return bool(outcomes)

    def _hook_calls(self) -> SpoutHookCalls:
        return SpoutHookCalls(self.emitter.hooks, self.plan.task_id)

    def _tell_ids(self) -> None:
        if not self._ids:
            return
        ids, self._ids[:] = list(self._ids), []
        for tup_id in ids:
            try:
                self._component.ack(tup_id)
                self._hook_calls().acked(tup_id, 0.0)
            except Exception as error:
                self.user_failed("ack", error, "the task goes on", tup_id)
        self.metrics.acked += len(ids)
