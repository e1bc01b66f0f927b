"""What task hooks are told besides emits. Made only where a component has hooks: each tuple then costs a call."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from heron.api.task_hook import BoltAckInfo, BoltExecuteInfo, BoltFailInfo, ITaskHook, SpoutAckInfo, SpoutFailInfo
from heron.api.tuple import Tuple

__all__ = ["BoltHookCalls", "SpoutHookCalls"]


class SpoutHookCalls:
    """Tells the hooks of a spout what became of its trees."""

    def __init__(self, hooks: Sequence[ITaskHook], task_id: int) -> None:
        self._hooks = hooks
        self._task_id = task_id

    def acked(self, tup_id: object, latency_s: float) -> None:
        """The tree is complete, so long after its emit."""
        info = SpoutAckInfo(tup_id, self._task_id, latency_s * 1000)
        for hook in self._hooks:
            hook.spout_ack(info)

    def failed(self, tup_id: object, latency_s: float) -> None:
        """The tree failed, so long after its emit."""
        info = SpoutFailInfo(tup_id, self._task_id, latency_s * 1000)
        for hook in self._hooks:
            hook.spout_fail(info)


class BoltHookCalls:
    """Tells the hooks of a bolt of calls of `process`, acks and fails."""

    def __init__(self, hooks: Sequence[ITaskHook], task_id: int, clock: Callable[[], float]) -> None:
        self._hooks = hooks
        self._task_id = task_id
        self._clock = clock
        # By identity, so that no tuple is held: an object that is used again brings its own time.
        self._given_s: dict[int, float] = {}

    def execute(self, process: Callable[[Tuple], object], tup: Tuple) -> None:
        """Calls `process`, and tells how long that took."""
        start_s = self._given_s[id(tup)] = self._clock()
        process(tup)
        info = BoltExecuteInfo(tup, self._task_id, (self._clock() - start_s) * 1000)
        for hook in self._hooks:
            hook.bolt_execute(info)

    def acked(self, tup: Tuple) -> None:
        """The bolt acked it."""
        info = BoltAckInfo(tup, self._task_id, self._since_given_ms(tup))
        for hook in self._hooks:
            hook.bolt_ack(info)

    def failed(self, tup: Tuple) -> None:
        """The bolt failed it."""
        info = BoltFailInfo(tup, self._task_id, self._since_given_ms(tup))
        for hook in self._hooks:
            hook.bolt_fail(info)

    def _since_given_ms(self, tup: Tuple) -> float:
        now_s = self._clock()
        return (now_s - self._given_s.pop(id(tup), now_s)) * 1000  # a tick was not given to `process`
