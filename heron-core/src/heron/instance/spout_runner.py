"""When `next_tuple` is called, and when what it emitted is sent."""

from __future__ import annotations

from collections.abc import Callable

from heron.api.spout import Spout
from heron.clock import monotonic_s
from heron.instance.emitter import SpoutEmitter
from heron.instance.runner import Runner
from heron.instance.task import Task
from heron.instance.user_component import specialise
from heron.kernel.signals import Signals

__all__ = ["SpoutRunner"]

_SHORTEST_WAIT_S = 0.0003  # flushes of a trickle keep this distance: else 100,000 tuples/s are as many frames
_LONGEST_WAIT_S = 0.004  # between two calls of a next_tuple that has nothing
_RESTING_WAIT_S = 0.25  # paused or ended: commands wake it anyway, metrics go on
_FIRST_BACKOFF_S = 0.1
_LAST_BACKOFF_S = 10.0


class SpoutRunner(Runner):
    """Calls `next_tuple` as long as it emits and there is room for what it emits."""

    def __init__(self, task: Task, signals: Signals, component_class: type) -> None:
        self._spout_emitter = SpoutEmitter(task.origin(), task.gateway.data_out)
        super().__init__(task, self._spout_emitter, signals, component_class)
        self._component = Spout()
        # Only an author who overrides `ack` is told: at most once, a tuple is done with when it is emitted.
        self._ids: list[object] | None = [] if component_class.ack is not Spout.ack else None  # type: ignore[attr-defined]
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
        if self.ended or self.task.paused:
            self.emitter.flush()
            data_in.wait(_RESTING_WAIT_S)
        elif not data_out.has_room():
            data_out.wait_for_room(_RESTING_WAIT_S)
        else:
            self._emit_for_a_while()
            if self._spout_emitter.ending:
                self.end()

    def apply_routes(self) -> None:
        """`Runner.apply_routes`."""
        self.emitter.set_streams(self.task.out_streams(self.emitter.origin), ids=self._ids)

    def specialise(self) -> None:
        """`Runner.specialise`."""
        fast = None if self.debug else self.emitter.specialised()
        specialise(self._component, {"emit": fast})

    def paused_changed(self, paused: bool) -> None:
        """`Runner.paused_changed`."""
        doing, action = ("deactivate", self._component.deactivate) if paused else ("activate", self._component.activate)
        try:
            action()
        except Exception as error:
            self.user_failed(doing, error, "the task goes on")

    def _construct(self) -> None:
        self._component = self._class(delegate=self._spout_emitter)
        target = self.task.queued_target
        target.emit, target.end = self._component.emit, self._component.end

    def _emit_for_a_while(self) -> None:
        before = self._emitted()
        start_s = monotonic_s()
        failed = False
        try:
            self._call_next_tuple(start_s + self.task.settings.emit_slice_s)
        except Exception as error:
            failed = True
            self.user_failed("next_tuple", error, f"it is called again after {self._backoff_s:g} s")
        self._ack_immediately()
        if failed:
            self._back_off()
            return
        self._backoff_s = _FIRST_BACKOFF_S
        if self._emitted() != before:
            self._wait_s = _SHORTEST_WAIT_S
        self._flush_paced()

    def _call_next_tuple(self, deadline_s: float) -> None:
        """Until a call emits nothing, or the time is up; asks both after every call, as any call may block."""
        next_tuple = self._component.next_tuple
        clock = monotonic_s
        size = self._size()
        rows = size()
        while True:
            next_tuple()
            now_rows = size()
            if now_rows == rows or clock() >= deadline_s:
                return
            rows = now_rows

    def _flush_paced(self) -> None:
        """Flushes when the spout has nothing more or the linger is over, at least the shortest wait after the last."""
        now_s = monotonic_s()
        since_s = now_s - self._last_flush_s
        if not self.emitter.pending_rows():
            self.task.gateway.data_in.wait(self._wait_s)
            self._wait_s = min(2 * self._wait_s, _LONGEST_WAIT_S)
        elif since_s >= min(_SHORTEST_WAIT_S, self.task.settings.linger_s):
            self.emitter.flush()
            self._last_flush_s = now_s
        else:
            self.task.gateway.data_in.wait(_SHORTEST_WAIT_S - since_s)

    def _ack_immediately(self) -> None:
        if not self._ids:
            return
        ids, self._ids[:] = list(self._ids), []
        for tup_id in ids:
            try:
                self._component.ack(tup_id)
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
