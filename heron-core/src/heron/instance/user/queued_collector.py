"""The collector for threads that the author's code starts: it queues their calls, and the task thread executes them."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from types import CodeType, UnionType

from heron.api.tuple import Tuple
from heron.author_text import short_text
from heron.errors import UsageError
from heron.instance.queues.data_queue import Sleeper

__all__ = ["QueuedCollector", "QueuedTarget"]

_MOST_CALLS = 10_000  # a thread that calls faster than the task thread executes the calls waits
_LOOK_EVERY_S = 0.25


class QueuedTarget:
    """The component's methods that queued calls go to; set when the component is constructed."""

    def __init__(self) -> None:
        self.emit: Callable[..., object] | None = None
        self.ack: Callable[[Tuple], None] | None = None
        self.fail: Callable[[Tuple], None] | None = None
        self.end: Callable[[], None] | None = None

    def clear(self) -> None:
        """Calls have no effect any more."""
        self.emit = self.ack = self.fail = self.end = None


class QueuedCollector:
    """`heron.api.ThreadsafeCollector`: queues calls of other threads for the task thread."""

    def __init__(self, target: QueuedTarget, sleeper: Sleeper) -> None:
        self._target = target
        self._sleeper = sleeper
        self._calls: deque[tuple[Callable[[], object], CodeType, int]] = deque()
        self._room = threading.Event()
        self._task_thread = threading.get_ident()

    def emit(
        self,
        values: Sequence[object],
        stream: str = "default",
        *,
        tup_id: object = None,
        anchors: Iterable[Tuple] | None = None,
        direct_task: int | None = None,
    ) -> None:
        """Queues an emit."""
        row = _copied(values, str | bytes)
        extra: dict[str, object] = {} if tup_id is None else {"tup_id": tup_id}
        if anchors is not None:
            extra = {"anchors": _copied(anchors, Tuple)}
        emit = self._target.emit
        if emit is not None:
            self._queue(partial(emit, row, stream=stream, direct_task=direct_task, **extra))

    def ack(self, tup: Tuple) -> None:
        """Queues an ack."""
        ack = self._target.ack
        if ack is not None:
            self._queue(partial(ack, tup))

    def fail(self, tup: Tuple) -> None:
        """Queues a fail."""
        fail = self._target.fail
        if fail is not None:
            self._queue(partial(fail, tup))

    def end(self) -> None:
        """Queues the end of this spout task."""
        end = self._target.end
        if end is not None:
            self._queue(end)

    def call(self, function: Callable[[], object]) -> None:
        """Queues a call of a function."""
        given: object = function  # an author's call is not checked by types
        if not callable(given):
            msg = f"call: {short_text(given)} cannot be called; give a function without arguments"
            raise UsageError(msg)
        self._queue(function)

    def drain(self, failed: Callable[[BaseException, str], None]) -> None:
        """Task thread: executes the queued calls; passes each exception to `failed`, with the line of the call."""
        while self._calls:
            call, code, line = self._calls.popleft()
            try:
                call()
            except BaseException as error:
                failed(error, f"{code.co_filename}, line {line}")
            if len(self._calls) < _MOST_CALLS and not self._room.is_set():
                self._room.set()

    def __len__(self) -> int:
        """The number of queued calls."""
        return len(self._calls)

    def _queue(self, call: Callable[[], object]) -> None:
        while len(self._calls) >= _MOST_CALLS and threading.get_ident() != self._task_thread:
            self._room.clear()
            if len(self._calls) >= _MOST_CALLS:  # read after the change, so that no waiter is missed
                self._room.wait(_LOOK_EVERY_S)
        own = sys._getframe(1)  # the documented way to a caller; it costs less than the queue
        caller = own.f_back or own  # a thread of a C library has no caller
        self._calls.append((call, caller.f_code, caller.f_lineno))
        self._sleeper.nudge()


def _copied(entries: Iterable[object], refused: type | UnionType) -> object:
    """The entries as a tuple; an iterable that the task thread must see to refuse it, as it is."""
    return entries if issubclass(type(entries), refused) else tuple(entries)
