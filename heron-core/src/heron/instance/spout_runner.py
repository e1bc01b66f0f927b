"""When `next_tuple` is called, and when what it emitted is sent."""

from __future__ import annotations

import math
from collections.abc import Callable

from heron.api.api_constants import TOPOLOGY_MAX_SPOUT_PENDING
from heron.api.config import setting
from heron.api.definition import StreamDefinition
from heron.api.spout import Spout
from heron.clock import monotonic_s
from heron.driver_kit.signals import Signals
from heron.instance.data_queue import Command, RootsSettled, SessionOpened
from heron.instance.emitter import SpoutEmitter
from heron.instance.hook_calls import SpoutHookCalls
from heron.instance.out_stream import StreamOrigin, StreamRoutes
from heron.instance.root_book import RootBook
from heron.instance.root_settler import RootSettler
from heron.instance.runner import Runner
from heron.instance.task import Task
from heron.instance.tracked_stream import RootStream
from heron.instance.user_component import specialise

__all__ = ["SpoutRunner"]

_SHORTEST_WAIT_S = 0.0003  # flushes of a trickle keep this distance: else 100,000 tuples/s are as many frames
_LONGEST_WAIT_S = 0.004  # between two calls of a next_tuple that has nothing
_RESTING_WAIT_S = 0.25  # paused or ended: commands wake it anyway, metrics go on
_FIRST_BACKOFF_S = 0.1
_LAST_BACKOFF_S = 10.0
_DEFAULT_PENDING = 60_000  # more gains nothing (measured)


class SpoutRunner(Runner):
    """Calls `next_tuple` as long as it emits and there is room for what it emits."""

    def __init__(self, task: Task, signals: Signals, component_class: type) -> None:
        self._spout_emitter = SpoutEmitter(task.origin(), task.gateway.data_out)
        super().__init__(task, self._spout_emitter, signals, component_class)
        self._component = Spout()
        # Only an author who overrides `ack` is told: at most once, a tuple is done with when it is emitted.
        told = component_class.ack is not Spout.ack  # type: ignore[attr-defined]
        self._ids: list[object] | None = [] if told and not task.tracks_acks else None
        self._book = RootBook(monotonic_s)
        self._settler = RootSettler(self._book, task.metrics, self._told_in_vain)
        self._most_pending = _most_pending(task) if task.tracks_acks else math.inf
        self._fair_room = min(task.settings.batch_rows, self._most_pending / 4)
        self._scarce_since_s = math.inf
        self._quiet = False
        self._wait_s = _SHORTEST_WAIT_S
        self._backoff_s = _FIRST_BACKOFF_S
        self._last_flush_s = 0.0

    @property
    def component(self) -> Spout:
        """The author's spout."""
        return self._component

    def work(self) -> None:
        """`Runner.work`."""
        data_in, data_out = self.task.gateway.data_in, self.task.gateway.data_out
        if self.ended or self.task.paused or self.task.gateway.held_back.culprits:
            self.emitter.flush()
            data_in.wait(_RESTING_WAIT_S)
        elif not data_out.has_room():
            data_out.wait_for_room(_RESTING_WAIT_S)
        elif self._scarce(room := self._room()):
            self.emitter.flush()
            data_in.wait(_RESTING_WAIT_S if room <= 0 else self.task.settings.linger_s)
        else:
            self._emit_for_a_while(room)
            if self._spout_emitter.ending and self._done():
                self.end()

    def handle(self, command: Command) -> None:
        """`Runner.handle`."""
        if isinstance(command, RootsSettled):
            self._settler.take(command)
        elif isinstance(command, SessionOpened):
            self._settler.lose_all()
        super().handle(command)

    def apply_routes(self) -> None:
        """`Runner.apply_routes`."""
        origin = self.emitter.origin
        if self.task.tracks_acks:
            self.emitter.set_streams(self.task.out_streams(origin, self._root_stream))
        else:
            self.emitter.set_streams(self.task.out_streams(origin), ids=self._ids)

    def specialise(self) -> None:
        """`Runner.specialise`."""
        fast = None if self.debug else self.emitter.specialised()
        specialise(self._component, {"emit": fast})
        if self.emitter.hooks:
            self._settler.hook_calls = SpoutHookCalls(self.emitter.hooks, self.task.spec.task_id)

    def paused_changed(self, paused: bool) -> None:
        """`Runner.paused_changed`."""
        doing, action = ("deactivate", self._component.deactivate) if paused else ("activate", self._component.activate)
        try:
            action()
        except Exception as error:
            self.user_failed(doing, error, "the task goes on")

    def _root_stream(
        self, number: int, definition: StreamDefinition, routes: StreamRoutes, origin: StreamOrigin
    ) -> RootStream:
        return RootStream(number, definition, routes, origin, self._book)

    def _scarce(self, room: float) -> bool:
        """Whether acks must come first: there is no room, or so little that a batch would be small.

        Little room is given the linger to become more. Without that a spout at its limit sends a batch for each few
        acks, and every process behind it pays for small batches.
        """
        if room <= 0:
            return True
        if room >= self._fair_room:
            self._scarce_since_s = math.inf
            return False
        now_s = monotonic_s()
        self._scarce_since_s = min(self._scarce_since_s, now_s)
        if now_s - self._scarce_since_s < self.task.settings.linger_s:
            return True
        self._scarce_since_s = math.inf
        return False

    def _room(self) -> float:
        """How many roots may be added: less than one means that acks must come first."""
        return self._most_pending - self._book.in_flight - self.emitter.pending_rows()

    def _done(self) -> bool:
        """After `end`: at most once at once, else when no tree is in flight and a call since has emitted nothing."""
        if not self.task.tracks_acks:
            return True
        return self._quiet and not self._book.in_flight and not self.emitter.pending_rows()

    def _told_in_vain(self, doing: str, error: Exception, tup_id: object) -> None:
        self.user_failed(doing, error, "the task goes on", tup_id)

    def _construct(self) -> None:
        self._component = self._class(delegate=self._spout_emitter)
        self._settler.on_ack = self._component.ack if self._class.ack is not Spout.ack else None  # type: ignore[attr-defined]
        self._settler.on_fail = self._component.fail if self._class.fail is not Spout.fail else None  # type: ignore[attr-defined]
        target = self.task.queued_target
        target.emit, target.end = self._component.emit, self._component.end

    def _emit_for_a_while(self, room: float) -> None:
        before = self._emitted()
        failed = False
        if room != math.inf:
            share = max(1, int(room) // len(self.emitter.streams))  # that of all streams must not exceed it
            for stream in self.emitter.streams.values():
                stream.limit[0] = min(stream.limit[0], share)
        try:
            with self.emitter.baton:
                self._call_next_tuple()
        except Exception as error:
            failed = True
            self._quiet = False  # an ending task is asked again
            self.user_failed("next_tuple", error, f"it is called again after {self._backoff_s:g} s")
        self._ack_immediately()
        if failed:
            self._back_off()
            return
        self._backoff_s = _FIRST_BACKOFF_S
        self._quiet = self._emitted() == before
        if not self._quiet:
            self._wait_s = _SHORTEST_WAIT_S
        self._flush_paced()

    def _call_next_tuple(self) -> None:
        """Until a call emits nothing, or there was a flush: a batch is full, or the linger is over.

        No more than that is asked after a call, as every question costs each tuple; and no less, as any call may block.
        """
        next_tuple = self._component.next_tuple
        overflowed = self.emitter.overflowed
        overflowed[0] = False
        size = self._size()
        rows = size()
        while True:
            next_tuple()
            before, rows = rows, size()
            if rows == before or overflowed[0]:
                return

    def _flush_paced(self) -> None:
        """Flushes when the spout has nothing more, at some distance from the flush before, or the linger is over."""
        now_s = monotonic_s()
        since_s = now_s - self._last_flush_s
        pending = self.emitter.pending_rows()
        if pending and since_s >= (_SHORTEST_WAIT_S if self._quiet else self.task.settings.linger_s):
            self.emitter.flush()
            self._last_flush_s = now_s
        elif self._quiet and pending:
            self.task.gateway.data_in.wait(_SHORTEST_WAIT_S - since_s)
        elif self._quiet:
            self.task.gateway.data_in.wait(self._wait_s)
            self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S)

    def _ack_immediately(self) -> None:
        if not self._ids:
            return
        ids, self._ids[:] = list(self._ids), []
        for tup_id in ids:
            try:
                self._component.ack(tup_id)
                if self._settler.hook_calls is not None:
                    self._settler.hook_calls.acked(tup_id, 0.0)
            except Exception as error:
                self.user_failed("ack", error, "the task goes on", tup_id)
        self.task.metrics.acked += len(ids)

    def _back_off(self) -> None:
        self.emitter.flush()
        self.task.gateway.data_in.wait(self._backoff_s)
        self._backoff_s = min(2 * self._backoff_s, _LAST_BACKOFF_S)

    def _emitted(self) -> int:
        return sum(self.emitter.emitted(name) for name in self.emitter.streams)

    def _size(self) -> Callable[[], int]:
        """What tells cheaply whether a call has emitted: the length of the only log, or the sum over all."""
        streams = tuple(self.emitter.streams.values())
        return streams[0].rows.__len__ if len(streams) == 1 else self._emitted


def _most_pending(task: Task) -> int:
    value = setting(task.config, TOPOLOGY_MAX_SPOUT_PENDING)
    return value if isinstance(value, int) else _DEFAULT_PENDING
