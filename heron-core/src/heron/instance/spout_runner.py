"""The loop of a spout task: calls `next_tuple` as long as it emits and there is room, and flushes what it emitted.

No call follows `end`, except at least once for failed roots that the spout has queued (`acks.owed_replays`).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from functools import partial
from typing import TYPE_CHECKING

from heron.api.api_constants import TOPOLOGY_TRACE_ONE_IN
from heron.api.config import setting
from heron.api.plain_components import PlainSpout
from heron.api.spout import Spout
from heron.clock import monotonic_s
from heron.driver_kit.signals import Signals
from heron.errors import HeronError
from heron.instance.acks.pending_roots import ImmediateAcks, PendingRoots, RootCallbacks
from heron.instance.metrics.task_time import TaskTime, TimeUse
from heron.instance.output.emitter import Emitter, SpoutEmitter
from heron.instance.own_replays import OwnReplays
from heron.instance.pacing import Backoff, FlushPacer, RootQuota, SourceBacklog
from heron.instance.queues.data_queue import Command, RootsSettled, SessionOpened
from heron.instance.replay.replay_policy import ReplayPolicy
from heron.instance.runner import ComponentRunner, rest_s
from heron.instance.task import Task
from heron.instance.user.user_component import SpoutHookCalls, specialise
from heron.ipc.machine import Machine
from heron.planner.physical_plan import PhysicalPlan, PlanIndex

if TYPE_CHECKING:  # topologies without checkpoints need not import them
    from heron.instance.acks.held_acks import HeldRootCallbacks
    from heron.instance.state.task_checkpoints import TaskCheckpoints

__all__ = ["SpoutRunner"]

_SHORTEST_POLL_S = 0.0003  # between two calls of a `next_tuple` that emits nothing; doubles up to the longest
_LONGEST_POLL_S = 0.004
_HELD_UP_WAIT_S = 0.25  # for room, acks or the end of back pressure: what ends the wait also wakes the task
_FIRST_BACKOFF_S = 0.1  # after an exception in `next_tuple`; doubles up to the last
_LAST_BACKOFF_S = 10.0


class SpoutRunner(ComponentRunner):
    """Runs a spout. At least once it keeps the roots in flight, at most once it acks what was emitted."""

    def __init__(self, task: Task, signals: Signals, component_class: type) -> None:
        self._spout_emitter = SpoutEmitter(task.origin(), task.gateway.data_out)
        super().__init__(task, self._spout_emitter, signals, component_class)
        self._spout_emitter.watermark_receivers = self._receivers
        self._component = Spout()
        self._roots = PendingRoots(monotonic_s)
        self._callbacks = RootCallbacks(self._roots, task.metrics, self._callback_failed)
        self._held: HeldRootCallbacks | None = None
        if task.tracks_acks and task.checkpoints is not None:
            from heron.instance.acks.held_acks import HeldRootCallbacks  # noqa: PLC0415  # see above

            self._held = HeldRootCallbacks(self._roots, task.metrics, self._callback_failed)
            self._callbacks = self._held
        self._callbacks.spans = task.spans
        self._replays = OwnReplays(self._roots)
        if task.tracks_acks and (policy := ReplayPolicy.of(task.config)) is not None:
            from heron.instance.spout_replays import SpoutReplays  # noqa: PLC0415  # most topologies need not import it

            self._replays = replays = SpoutReplays.of_task(policy, task, self._spout_emitter, self._roots)
            self._callbacks.replayer, self._replay_letters = replays.replayer, replays.take_letters
            task.take_letters = self._take_letters
        self._immediate: ImmediateAcks | None = None
        linger = task.gateway.linger
        linger.grow_to(task.settings.queue_target_s / 2)
        self._source = SourceBacklog(linger)
        self._awake_s = partial(_awake_s, task.gateway.machine, self.emitter.time)
        if task.tracks_acks:
            self._quota = RootQuota.of(task.config, linger, monotonic_s)
        else:
            self._quota = RootQuota(math.inf, linger, monotonic_s)
            self._immediate = ImmediateAcks(component_class, task.metrics, self._callback_failed)
        self._flush_rows = partial(_flush_rows, self.emitter)
        self._pacer = FlushPacer(linger)
        self._poll = Backoff(_SHORTEST_POLL_S, _LONGEST_POLL_S)
        self._backoff = Backoff(_FIRST_BACKOFF_S, _LAST_BACKOFF_S)
        self._quiet = False

    @property
    def component(self) -> Spout:
        """`ComponentRunner.component`."""
        return self._component

    def work(self) -> None:
        """`ComponentRunner.work`."""
        data_out = self.task.gateway.data_out
        if self.ended or self.task.paused:
            self._rest_as(TimeUse.PAUSED, rest_s(self.task))
        elif self._spout_emitter.ending and not (self._replays.is_due() or self._owes_replays()):
            self._end_or_wait()
        elif self.task.gateway.throttle.culprits:
            self._rest_as(TimeUse.THROTTLED, _HELD_UP_WAIT_S)
        elif not data_out.has_room():
            self.emitter.time.waited(TimeUse.ROOM, data_out.wait_for_room(_HELD_UP_WAIT_S))
        elif self._quota.must_wait(free := self._free_roots(), self._flush_rows):
            # Without a free root not even a replay that is due is emitted; only an outcome helps, and wakes the task.
            self._rest_as(TimeUse.ACKS, _HELD_UP_WAIT_S if free <= 0 else self.task.settings.linger_s)
        elif self._replays.is_due():
            self._replays.emit_due(free)
        elif self._replays.is_full():
            self._rest_as(TimeUse.ACKS, self._replays.wait_s(_HELD_UP_WAIT_S))
        else:
            self._emit_for_a_while(free)

    def _rest_as(self, use: TimeUse, wait_s: float) -> None:
        self.emitter.flush()
        self._wait(use, wait_s)

    def _wait(self, use: TimeUse, wait_s: float) -> None:
        self.emitter.time.waited(use, self.task.gateway.data_in.wait(wait_s))

    def handle(self, command: Command) -> None:
        """`ComponentRunner.handle`."""
        if isinstance(command, RootsSettled):
            self._callbacks.settle(command)
        elif isinstance(command, SessionOpened):
            self._callbacks.lose_all()
        super().handle(command)

    def _take_letters(self, ids: Collection[str], *, drop: bool) -> dict[str, str]:
        if not drop and (self.ended or self.task.paused):
            why = "it has ended" if self.ended else "it is paused; activate the topology first"
            raise HeronError(why)
        return self._replay_letters(ids, drop=drop)

    def apply_routes(self) -> None:
        """`ComponentRunner.apply_routes`."""
        origin = self.emitter.origin
        # A spout that another task replaces emits only what its roots need, and then leaves.
        self._spout_emitter.ending = self._spout_emitter.ending or self.task.is_removed()
        self._trace_roots()
        if self._immediate is None:
            self.emitter.set_streams(self.task.out_streams(origin, self._replays.make_stream))
        else:
            self.emitter.set_streams(self.task.out_streams(origin), ids=self._immediate.ids)

    def _survives(self, plan: PhysicalPlan) -> bool:
        """At least once, the spout emits again what the restore undoes, unless its tasks change."""
        if self._held is None:
            return False
        index, name = PlanIndex(plan), self.task.spec.component
        return index.tasks_of(name) == self.task.index.tasks_of(name)

    def _continue_restored(self) -> None:
        super()._continue_restored()
        if self._held is not None and self.task.checkpoints is not None:
            self._held.complete(self.task.checkpoints.plan.complete)
            self._held.restored()

    def _restore(self, plan: PhysicalPlan) -> None:
        """`ComponentRunner._restore`. The former component hears of its roots once more: they may come from a queue."""
        if self._held is not None and plan.checkpoints is not None:
            self.emitter.flush()
            self._held.complete(plan.checkpoints.complete)
            self._held.restored()
        super()._restore(plan)

    def _config_changed(self) -> None:
        """`ComponentRunner._config_changed`."""
        if self.task.tracks_acks:
            self._quota = RootQuota.of(self.task.config, self.task.gateway.linger, monotonic_s)
        self._trace_roots()

    def _trace_roots(self) -> None:
        one_in = setting(self.task.config, TOPOLOGY_TRACE_ONE_IN)
        self._spout_emitter.trace_roots(one_in if isinstance(one_in, int) else 0)

    def _follow_checkpoints(self, checkpoints: TaskCheckpoints) -> None:
        super()._follow_checkpoints(checkpoints)
        if self._held is not None:
            self._held.complete(checkpoints.plan.complete)
        if checkpoints.save_is_due() and not self.task.is_prepared():
            number = checkpoints.plan.number
            self.emitter.flush()
            if self._held is not None:
                self._held.saved(number)
            checkpoints.save(number, self._component, ended=self.ended or self._is_done())
            self._mark_checkpoint(number)

    def _reset(self) -> None:
        """`ComponentRunner._reset`."""
        self._spout_emitter.ending = False
        self._roots.owed_replays.forget()
        self._replays.forget()
        self._spout_emitter.watermark_us = None  # the new component may begin at an earlier time
        self._quiet = False
        self._poll.reset()
        self._backoff.reset()
        if self._immediate is not None and self._immediate.ids:
            self._immediate.ids.clear()

    def specialise(self) -> None:
        """`ComponentRunner.specialise`."""
        generated = None if self.debug else self.emitter.specialised()
        specialise(self._component, {"emit": generated})
        if self.emitter.hooks:
            self._callbacks.hook_calls = SpoutHookCalls(self.emitter.hooks, self.task.spec.task_id)

    def paused_changed(self, paused: bool) -> None:
        """`ComponentRunner.paused_changed`."""
        doing, action = ("deactivate", self._component.deactivate) if paused else ("activate", self._component.activate)
        try:
            action()
        except BaseException as error:
            self.user_failed(doing, error, "the task continues")

    def _construct(self) -> None:
        spout = self._component = self._class(delegate=self._spout_emitter)
        self._callbacks.on_ack = spout.ack if self._class.ack is not Spout.ack else None  # type: ignore[attr-defined]
        self._callbacks.on_ack_all = spout.ack_all if isinstance(spout, PlainSpout) else None
        overrides_fail = self._class.fail is not Spout.fail  # type: ignore[attr-defined]
        self._callbacks.on_fail = self._call_fail if overrides_fail else None
        own = self._class.backlog  # type: ignore[attr-defined]  # of older programs it may be anything
        self.task.metrics.backlog = spout.backlog if own is not Spout.backlog and callable(own) else None
        target = self.task.queued_target
        target.emit, target.end = spout.emit, spout.end

    def _free_roots(self) -> float:
        """How many roots may be added; infinite at most once."""
        return self._quota.most - self._roots.in_flight - self.emitter.pending_rows()

    def _call_fail(self, tup_id: object) -> None:
        self._roots.owed_replays.fail(self._component.fail, tup_id, self._emitted)

    def _owes_replays(self) -> bool:
        """After `end`: whether the spout must be called once more, because it has queued failed roots."""
        if self._roots.owed_replays:
            self.emitter.flush()  # a root that waits for its flush is no longer owed
        return bool(self._roots.owed_replays)

    def _is_done(self) -> bool:
        """Whether `end` was called and the task may end: at least once, all trees are complete or given up."""
        if not self._spout_emitter.ending:
            return False
        return not (self._roots.in_flight or self._roots.owed_replays or self._replays.waiting)

    def _end_or_wait(self) -> None:
        """Ends, unless trees are in flight: their roots may fail, and be emitted again."""
        self.emitter.flush()
        if not self._is_done():
            self._wait(TimeUse.ACKS, self._replays.wait_s(rest_s(self.task)))
            return
        if self._immediate is not None:
            self._immediate.call(self._component, self._callbacks.hook_calls)  # of queued emits
        self.end()

    def _emit_for_a_while(self, free: float) -> None:
        before = self._emitted()
        owed = len(self._roots.owed_replays) if self._spout_emitter.ending else 0
        calls = 0
        failed = again = False
        if free != math.inf:
            self._limit_batches(int(free))
        try:
            with self.emitter.lock.released():
                if owed:
                    calls = self._call_for_replays(owed)
                else:
                    self._call_next_tuple()
        except BaseException as error:
            failed = True
            again = not self._spout_emitter.ending or bool(self._roots.owed_replays)
            remedy = f"it is called again after {self._backoff.wait_s:g} s" if again else "it has called end()"
            self.user_failed("next_tuple", error, remedy)
        if self._immediate is not None:
            self._immediate.call(self._component, self._callbacks.hook_calls)
        if failed:
            self.emitter.flush()
            if again:
                self._wait(TimeUse.INPUT, self._backoff.take())
            return
        self._backoff.reset()
        self._quiet = self._emitted() == before
        if self._quiet:
            self.emitter.time.emitted_nothing()
        else:
            self._poll.reset()
        if owed:
            self._note_replays(owed, calls)
        self._flush_paced()

    def _note_replays(self, owed: int, calls: int) -> None:
        self.emitter.flush()  # it takes the ids of new roots from those that are owed
        if not self._quiet:
            self._roots.owed_replays.called(owed, calls)
        elif not self._roots.in_flight:
            self._roots.owed_replays.forget()

    def _limit_batches(self, free: int) -> None:
        """The batches of all streams together must not exceed the free roots."""
        share = max(1, free // len(self.emitter.streams))
        for stream in self.emitter.streams.values():
            stream.limit_to(share)

    def _call_next_tuple(self) -> None:
        """Calls until a call emits nothing, or until there was a flush: a batch is full, or the linger is over.

        Nothing else is checked between two calls, because each check costs time per tuple. No check may be left out,
        because any call may block.
        """
        next_tuple = self._component.next_tuple
        emitter = self.emitter
        emitter.overflowed = False
        size = self._size()
        rows = size()
        while True:
            next_tuple()
            before, rows = rows, size()
            if rows == before or emitter.overflowed:
                return

    def _call_for_replays(self, owed: int) -> int:
        """Calls an ending spout until it has emitted as many tuples as it owes; returns the calls that emitted some."""
        next_tuple, emitter = self._component.next_tuple, self.emitter
        emitter.overflowed = False
        first = rows = self._emitted()
        calls = 0
        while True:
            next_tuple()
            before, rows = rows, self._emitted()
            if rows == before:
                return calls
            calls += 1
            if emitter.overflowed or rows - first >= owed:
                return calls

    def _flush_paced(self) -> None:
        """Flushes if the linger is over, or if the spout emits nothing more; keeps a distance between two flushes."""
        now_s = monotonic_s()
        if self._quiet or not self.emitter.overflowed:  # the last call has emitted nothing
            self._source.ran_dry(now_s)
        else:
            self._source.look_if_due(now_s, self._awake_s)
        if self.emitter.overflowed:
            self._pacer.start_waiting(now_s)  # the gateway has flushed, or a batch was full
        pending = self.emitter.pending_rows()
        idle_wait_s = self._pacer.idle_wait_s(now_s)
        if pending and (idle_wait_s <= 0 if self._quiet else self._pacer.linger_is_over(now_s)):
            self.emitter.flush()
            self._pacer.flushed(now_s)
        elif self._quiet:
            self._wait(TimeUse.INPUT, idle_wait_s if pending else self._poll.take())

    def _emitted(self) -> int:
        return sum(self.emitter.emitted(name) for name in self.emitter.streams)

    def _size(self) -> Callable[[], int]:
        """A cheap way to see whether a call has emitted: the length of the only buffer, or the sum over all streams."""
        streams = tuple(self.emitter.streams.values())
        return streams[0].rows.__len__ if len(streams) == 1 else self._emitted

    def _callback_failed(self, doing: str, error: BaseException, tup_id: object) -> None:
        self.user_failed(doing, error, "the task continues", tup_id)


def _flush_rows(emitter: Emitter) -> int:
    """How many rows make a full flush."""
    return sum(stream.full_limit for stream in emitter.streams.values())


def _awake_s(machine: Machine, time: TaskTime) -> float | None:
    """Seconds so far in which the task had something to emit; None if the system does not tell."""
    awake_s = machine.awake_s()
    return None if awake_s is None else awake_s + time.held_up_s()
