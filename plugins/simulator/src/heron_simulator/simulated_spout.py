"""The turn of a simulated spout: acks and fails, a few calls of `next_tuple`, and the end."""

from __future__ import annotations

import math
from functools import partial

from heron.api.api_constants import TOPOLOGY_MAX_SPOUT_PENDING
from heron.api.config import setting
from heron.api.spout import Spout
from heron.instance.emitter import SpoutEmitter
from heron.instance.pacing import Backoff
from heron.instance.pending_roots import ImmediateAcks
from heron.instance.task_context import QueuedTarget
from heron.instance.user_component import SpoutHookCalls
from heron.planner.physical_plan import TaskPlan
from heron_simulator.delivery import TrackedSpoutEmitter
from heron_simulator.simulated_task import SimulatedTask, SimulationEnvironment

__all__ = ["SimulatedSpout"]

_FIRST_BACKOFF_S = 0.1
_LAST_BACKOFF_S = 10.0


class SimulatedSpout(SimulatedTask):
    """Calls `next_tuple` up to `calls` times per turn, as long as it emits."""

    def __init__(self, environment: SimulationEnvironment, plan: TaskPlan, calls: int) -> None:
        super().__init__(environment, plan)
        ledger = environment.ledger
        self._emitter = (
            TrackedSpoutEmitter(self.origin(), self.outbox, ledger)
            if ledger
            else SpoutEmitter(self.origin(), self.outbox)
        )
        self._emitter.watermark_receivers = partial(environment.index.receiving_tasks, plan.component)
        self._component = Spout()
        self._calls = calls
        self._max_pending = int(str(setting(self.config, TOPOLOGY_MAX_SPOUT_PENDING)))
        self._immediate: ImmediateAcks | None = None
        self._backoff = Backoff(_FIRST_BACKOFF_S, _LAST_BACKOFF_S)
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
        if self.environment.ledger is None:
            self._immediate = ImmediateAcks(component_class, self.metrics, self._callback_failed)

    def set_streams(self, ids: list[object] | None = None) -> None:
        """`SimulatedTask.set_streams`."""
        super().set_streams(ids=None if self._immediate is None else self._immediate.ids)

    def due_s(self) -> float:
        """`SimulatedTask.due_s`."""
        return self._retry_s if not self.ended and self._retry_s > self.environment.clock.monotonic_s() else math.inf

    def work(self) -> bool:
        """`SimulatedTask.work`."""
        if self.ended:
            return False
        delivered = self._deliver_outcomes()
        self._quiet = self._quiet and not delivered
        if self.environment.clock.monotonic_s() >= self._retry_s:
            for _ in range(self._calls):
                if not self._has_room() or not self._call():
                    break
        self.emitter.flush()
        if self._immediate is not None:
            self._immediate.call(self._component, self._hook_calls())
        if self._emitter.ending and self._is_done():
            self.end()
            return True
        return delivered

    def _call(self) -> bool:
        """Calls `next_tuple` once; returns whether to call it again."""
        before = self.emitted()
        try:
            self._component.next_tuple()
        except Exception as error:
            wait_s = self._backoff.take()
            self._retry_s = self.environment.clock.monotonic_s() + wait_s
            self.user_failed("next_tuple", error, f"it is called again after {wait_s:g} s")
            return False
        self._backoff.reset()
        self._quiet = self.emitted() == before
        return not self._quiet

    def _has_room(self) -> bool:
        ledger = self.environment.ledger
        return ledger is None or ledger.in_flight(self.plan.task_id) < self._max_pending

    def _is_done(self) -> bool:
        """Whether the task may end after `end` was called.

        At least once, no tree may be in flight, no outcome may wait, and a call since then must have emitted nothing.
        """
        ledger = self.environment.ledger
        if ledger is None:
            return True
        return self._quiet and not ledger.in_flight(self.plan.task_id) and not ledger.has_outcomes(self.plan.task_id)

    def _deliver_outcomes(self) -> bool:
        ledger = self.environment.ledger
        outcomes = ledger.take_outcomes(self.plan.task_id) if ledger is not None else []
        for each in outcomes:
            doing, action = ("ack", self._component.ack) if each.complete else ("fail", self._component.fail)
            hooks = self._hook_calls()
            try:
                action(each.tup_id)
                (hooks.acked if each.complete else hooks.failed)(each.tup_id, each.latency_s)
            except Exception as error:
                self.user_failed(doing, error, "the task continues", each.tup_id)
            self.metrics.acked += each.complete
            self.metrics.failed += not each.complete
        return bool(outcomes)

    def _hook_calls(self) -> SpoutHookCalls:
        return SpoutHookCalls(self.emitter.hooks, self.plan.task_id)

    def _callback_failed(self, doing: str, error: Exception, tup_id: object) -> None:
        self.user_failed(doing, error, "the task continues", tup_id)
