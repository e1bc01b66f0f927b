"""What a bolt task has emitted, acked and failed since its last flush, and when it is sent.

An ack depends on what was emitted under its tuple, so each flush sends the emitted rows first, and the acks directly
behind them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from heron.api.api_constants import TOPOLOGY_ON_ERROR
from heron.clock import monotonic_s
from heron.instance.input.bolt_acks import BoltAcks, TrackedBoltAcks
from heron.instance.metrics.task_time import TimeUse
from heron.instance.output.emitter import BoltEmitter
from heron.instance.pacing import FlushPacer
from heron.instance.task import Task

if TYPE_CHECKING:  # most topologies need not import it
    from heron.instance.bolt_letters import Works

__all__ = ["BoltOutput", "acks_of"]

_WAIT_S = 0.25  # for room: metrics continue


class BoltOutput:
    """The emitter and the acks of a bolt, flushed together. `acks` are replaced when the task is restored."""

    def __init__(self, task: Task, emitter: BoltEmitter, acks: BoltAcks) -> None:
        self.acks = acks
        self._task = task
        self._emitter = emitter
        self._pacer = FlushPacer(task.gateway.linger)

    def waits(self) -> bool:
        """Whether tuples or acks wait for a flush."""
        return bool(self._emitter.pending_rows() or self.acks.waiting)

    def begin_batch(self) -> None:
        """Work on a batch begins; if nothing waits, the linger of its first row begins now at the earliest."""
        if not self.waits():
            self._pacer.start_waiting(monotonic_s())

    def flush(self, now_s: float) -> None:
        """Sends what was emitted, and directly behind it the acks that depend on it."""
        self.acks.settle()
        self._emitter.flush()
        self.acks.flush()
        self._pacer.flushed(now_s)

    def flush_if_due(self, now_s: float) -> None:
        """Flushes within a batch when the linger is over, and waits for room.

        The output of a batch may be far larger than the batch, and must not pile up in data-out.
        """
        if self.flush_after_linger(now_s):
            self.wait_for_room()

    def flush_after_linger(self, now_s: float) -> bool:
        """Flushes when the linger is over; returns whether it is."""
        if is_over := self._pacer.linger_is_over(now_s):
            self.flush(now_s)
        return is_over

    def flush_acks(self) -> None:
        """Flushes if acks wait, and they are as many as a batch has rows, or the linger is over."""
        if self.acks.waiting:
            now_s = monotonic_s()
            if self.acks.waiting >= self._task.settings.batch_rows or self._pacer.linger_is_over(now_s):
                self.flush(now_s)

    def idle_wait_s(self, now_s: float) -> float:
        """Seconds until a task without other work flushes; zero or less: now."""
        return self._pacer.idle_wait_s(now_s)

    def wait_if_full(self) -> bool:
        """Waits for a moment if data-out has no room; returns whether it did.

        Acks leave before that: output may block the task for minutes, and the roots would expire.
        """
        if self._task.gateway.data_out.has_room():
            return False
        self.acks.settle()
        if self.acks.waiting:
            self.flush(monotonic_s())
        self._wait()
        return True

    def wait_for_room(self) -> None:
        """Waits until data-out has room, or the process is asked to stop."""
        while not (self._task.gateway.data_out.has_room() or self._emitter.stop_requested()):
            self._wait()
            self._task.telemetry.publish_if_due(self._emitter, monotonic_s())

    def _wait(self) -> None:
        self._emitter.time.waited(TimeUse.ROOM, self._task.gateway.data_out.wait_for_room(_WAIT_S))


def acks_of(task: Task, emitter: BoltEmitter, works: Works) -> BoltAcks:
    """The acks of a bolt by its reliability, and by what its topology does with failed tuples."""
    if task.tracks_acks:
        return TrackedBoltAcks(emitter, task.metrics, task.gateway.data_out, task.spec.task_id, task.failed_rows())
    if task.config.get(TOPOLOGY_ON_ERROR) == "dead_letter":
        from heron.instance.bolt_letters import LetterAcks  # noqa: PLC0415  # see above

        return LetterAcks.of_task(task, emitter, works)
    return BoltAcks(emitter, task.metrics)
