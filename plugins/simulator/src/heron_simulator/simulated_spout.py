"""The turn of a simulated spout: acks and fails, a few calls of `next_tuple`, and the end."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from functools import partial
from typing import cast

from heron.api.api_constants import TOPOLOGY_MAX_SPOUT_PENDING
from heron.api.config import setting
from heron.api.dead_letter import DeadLetter
from heron.api.spout import Spout
from heron.instance.acks.owed_replays import OwedReplays
from heron.instance.acks.pending_roots import ImmediateAcks, PendingRoots
from heron.instance.output.emitter import SpoutEmitter
from heron.instance.own_replays import OwnReplays
from heron.instance.pacing import Backoff
from heron.instance.replay.kept_roots import KeptRoot
from heron.instance.replay.letter_store import TaskName
from heron.instance.replay.pickled_letter import LetterRow
from heron.instance.replay.replay_policy import ReplayPolicy
from heron.instance.replay.replayer import Replayer
from heron.instance.spout_replays import SpoutReplays
from heron.instance.user.queued_collector import QueuedTarget
from heron.instance.user.user_component import SpoutHookCalls
from heron.ipc.documents.letter_line import LetterLine
from heron.planner.physical_plan import TaskPlan
from heron_simulator.ack_ledger import TreeOutcome
from heron_simulator.delivery import TrackedSpoutEmitter
from heron_simulator.simulated_task import SimulatedTask, SimulationEnvironment

__all__ = ["SimulatedSpout"]

_FIRST_BACKOFF_S = 0.1
_LAST_BACKOFF_S = 10.0


class KeptLetters:
    """Adds the dead letters of a simulated spout that no bolt receives to a list."""

    dropped = 0

    def __init__(self, letters: list[DeadLetter]) -> None:
        self.letters = letters

    def add(self, letters: Mapping[str, LetterRow]) -> None:
        """`heron.instance.replay.letter_store.LetterStore.add`."""
        self.letters += [DeadLetter(*each) for each in letters.values()]

    def take(self, ids: Collection[str]) -> list[LetterLine]:
        """`heron.instance.replay.letter_store.LetterStore.take`: no command asks a simulation."""
        return []

    find = take

    def change(self, changes: Mapping[str, LetterRow | None]) -> bool:
        """`heron.instance.replay.letter_store.LetterStore.change`: nothing is emitted again."""
        return True


class SimulatedSpout(SimulatedTask):
    """Calls `next_tuple` up to `calls` times per turn, as long as it emits."""

    def __init__(self, environment: SimulationEnvironment, plan: TaskPlan, calls: int) -> None:
        super().__init__(environment, plan)
        ledger = environment.ledger
        self._owed_replays = OwedReplays()
        self._replayer: Replayer | None = None
        self.letters = KeptLetters(self.dead_letters)
        self._emitter = (
            TrackedSpoutEmitter(self.origin(), self.outbox, ledger, self._owed_replays)
            if ledger
            else SpoutEmitter(self.origin(), self.outbox)
        )
        self.replays = self._engine_replays()
        self._emitter.watermark_receivers = partial(environment.index.receiving_tasks, plan.component)
        self._component = Spout()
        self._calls = calls
        self._max_pending = int(str(setting(self.config, TOPOLOGY_MAX_SPOUT_PENDING)))
        self._immediate: ImmediateAcks | None = None
        self._backoff = Backoff(_FIRST_BACKOFF_S, _LAST_BACKOFF_S)
        self._retry_s = -math.inf

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
        now_s = self.environment.clock.monotonic_s()
        again_s = now_s + self.replays.wait_s(math.inf)
        return math.inf if self.ended else min(again_s, self._retry_s if self._retry_s > now_s else math.inf)

    def work(self) -> bool:
        """`SimulatedTask.work`."""
        if self.ended:
            return False
        delivered = self._deliver_outcomes()
        if self.replays.is_due():
            self.replays.emit_due(self._free_roots())
        if self.environment.clock.monotonic_s() >= self._retry_s:
            for _ in range(self._calls):
                if not self._may_call() or not self._call():
                    break
        self.emitter.flush()
        if self._immediate is not None:
            self._immediate.call(self._component, self._hook_calls())
        self._queued.drain(self._queued_failed)
        if self._emitter.ending and self._is_done():
            self.end()
            return True
        return delivered

    def _call(self) -> bool:
        """Calls `next_tuple` once; returns whether to call it again."""
        before = self.emitted()
        owed = len(self._owed_replays) if self._emitter.ending else 0
        try:
            self._component.next_tuple()
        except (Exception, SystemExit) as error:
            wait_s = self._backoff.take()
            self._retry_s = self.environment.clock.monotonic_s() + wait_s
            again = not self._emitter.ending or self._owed_replays
            remedy = f"it is called again after {wait_s:g} s" if again else "it has called end()"
            self.user_failed("next_tuple", error, remedy)
            return False
        self._backoff.reset()
        quiet = self.emitted() == before
        if owed and not quiet:
            self._owed_replays.called(owed, 1)
        elif owed and not self._has_trees():
            self._owed_replays.forget()
        return not quiet

    def _may_call(self) -> bool:
        """Whether there is room, and after `end` whether the spout owes replays; see `OwedReplays`."""
        if self._emitter.ending and not self._owed_replays:
            return False
        return self._free_roots() > 0 and not self.replays.is_full()

    def _free_roots(self) -> float:
        """How many roots may be added; infinite at most once."""
        ledger = self.environment.ledger
        return math.inf if ledger is None else self._max_pending - ledger.in_flight(self.plan.task_id)

    def _engine_replays(self) -> OwnReplays:
        """What emits failed roots again: the author's code, or `heron.instance.spout_replays`."""
        clock = self.environment.clock.monotonic_s
        emitter, policy, pending = self._emitter, ReplayPolicy.of(self.config), PendingRoots(clock)
        if policy is None or not isinstance(emitter, TrackedSpoutEmitter):
            return OwnReplays(pending)
        name = TaskName(self.plan.component, self.plan.task_id, 1)
        replays = SpoutReplays(policy, name, emitter, pending, self.letters, clock)
        emitter.replayer = self._replayer = replays.replayer
        return replays

    def _is_done(self) -> bool:
        """Whether the task may end after `end` was called: at least once, all trees are complete or given up."""
        return not (self._has_trees() or self._owed_replays or self.replays.waiting)

    def _has_trees(self) -> bool:
        """Whether a tree is in flight, or the spout has yet to hear its outcome."""
        ledger, task_id = self.environment.ledger, self.plan.task_id
        return ledger is not None and (ledger.in_flight(task_id) > 0 or ledger.has_outcomes(task_id))

    def _deliver_outcomes(self) -> bool:
        ledger = self.environment.ledger
        outcomes = ledger.take_outcomes(self.plan.task_id) if ledger is not None else []
        for each in outcomes:
            for tup_id in self._ids_of(each):
                self._call_back(each, tup_id)
            self.metrics.acked += each.complete
            self.metrics.failed += not each.complete
        return bool(outcomes)

    def _ids_of(self, ended: TreeOutcome) -> list[object]:
        """The ids of which the author hears: where the engine replays, not of a root that it emits again."""
        if (replayer := self._replayer) is None:
            return [ended.tup_id]
        root = cast("KeptRoot", ended.tup_id)  # as the emitter of the spout makes it
        if ended.complete:
            return replayer.acked([root])
        return replayer.failed([root], ended.outcome, ended.latency_s, [ended.cause])

    def _call_back(self, ended: TreeOutcome, tup_id: object) -> None:
        doing, action = ("ack", self._component.ack) if ended.complete else ("fail", self._fail)
        hooks = self._hook_calls()
        try:
            action(tup_id)
            (hooks.acked if ended.complete else hooks.failed)(tup_id, ended.latency_s)
        except (Exception, SystemExit) as error:
            self.user_failed(doing, error, "the task continues", tup_id)

    def _fail(self, tup_id: object) -> None:
        fail = self._component.fail
        if type(self._component).fail is Spout.fail:
            fail(tup_id)  # it queues nothing
        else:
            self._owed_replays.fail(fail, tup_id, self.emitted)

    def _hook_calls(self) -> SpoutHookCalls:
        return SpoutHookCalls(self.emitter.hooks, self.plan.task_id)

    def _callback_failed(self, doing: str, error: BaseException, tup_id: object) -> None:
        self.user_failed(doing, error, "the task continues", tup_id)
