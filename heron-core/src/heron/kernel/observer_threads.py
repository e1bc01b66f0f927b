"""Sends lifecycle events to observers. Each observer has its own daemon thread and a time limit.

An observer that exceeds the limit in its load or in a call is abandoned: the log names it once, and it is not called
again. An observer that keeps the interpreter lock stops the whole process; nothing inside the process can prevent that.
pluggy is imported only for an observer, on its thread.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from heron.clock import monotonic_s
from heron.driver_kit.loading import load_object
from heron.spi.hooks import HOOK_FACTS

__all__ = ["LIMIT_S", "Hooks", "ThreadedHooks", "check_facts"]

LIMIT_S = 5.0
"""The time limit of an observer's call, as in the contract `heron.spi.hooks`."""

_BACKLOG = 1000  # lifecycle events are rare, so this queue is full only if the observer hangs

_log = logging.getLogger(__name__)


class Hooks(Protocol):
    """Notifies observers; never raises because of one of them."""

    def notify(self, hook: str, **facts: object) -> None:
        """Announces the event `hook` with the facts that its specification lists."""
        ...


class _Observers(Protocol):
    """`heron.kernel.observers.Observers`, which is imported only for an observer."""

    def notify(self, hook: str, **facts: object) -> None: ...


_Load = Callable[[Sequence[str]], _Observers]
_Announced = tuple[str, dict[str, object]]


class ThreadedHooks:
    """Announces events and never waits for an observer."""

    def __init__(self, entries: Sequence[str], limit_s: float = LIMIT_S) -> None:
        """`entries` are ``module:object``; each is loaded on its own thread, so its import delays no caller."""
        self._workers = [_Worker(entry, limit_s) for entry in entries]

    def notify(self, hook: str, **facts: object) -> None:
        """Puts the event into the queue of each observer's thread and returns at once."""
        check_facts(hook, facts)
        for worker in self._workers:
            worker.put((hook, facts))

    def close(self, timeout_s: float) -> None:
        """Waits until the observers have handled all events, at most `timeout_s` for all observers."""
        deadline = monotonic_s() + timeout_s
        for worker in self._workers:
            worker.finish()
        for worker in self._workers:
            worker.wait(deadline - monotonic_s())


def check_facts(hook: str, facts: dict[str, object]) -> None:
    """Raises TypeError when the facts are not those that the specification lists."""
    wanted = HOOK_FACTS[hook]
    if wanted != facts.keys():
        msg = f"{hook} takes {sorted(wanted)}, not {sorted(facts)}"
        raise TypeError(msg)


class _Worker:
    """The thread of one observer."""

    def __init__(self, entry: str, limit_s: float) -> None:
        self._entry = entry
        self._limit_s = limit_s
        self._queue: queue.Queue[_Announced | None] = queue.Queue(_BACKLOG)
        self._abandoned = threading.Event()
        self._done = threading.Event()
        threading.Thread(target=self._run, name=f"observer-{entry}", daemon=True).start()

    def put(self, announced: _Announced) -> None:
        if self._abandoned.is_set():
            return
        try:
            self._queue.put_nowait(announced)
        except queue.Full:
            _log.error("observer %s has %d events waiting; %s dropped", self._entry, _BACKLOG, announced[0])

    def finish(self) -> None:
        """Ends the thread after the queued events."""
        if not self._abandoned.is_set() and not self._queue.full():
            self._queue.put_nowait(None)

    def wait(self, timeout_s: float) -> None:
        if not self._queue.full():
            self._done.wait(max(0.0, timeout_s))

    def _run(self) -> None:
        try:
            observers = self._limited("its load", self._load)
            while observers and (announced := self._queue.get()) is not None and not self._abandoned.is_set():
                hook, facts = announced
                self._limited(hook, lambda: observers[0].notify(hook, **facts))  # noqa: B023  # called at once
        finally:
            self._abandoned.set()
            self._done.set()

    def _load(self) -> list[_Observers]:
        load = cast("_Load", load_object("heron.kernel.observers:Observers.load"))
        return [load([self._entry])]

    def _limited(self, doing: str, call: Callable[[], list[_Observers] | None]) -> list[_Observers] | None:
        timer = threading.Timer(self._limit_s, self._abandon, (doing,))
        timer.daemon = True
        timer.start()
        try:
            return call()
        finally:
            timer.cancel()

    def _abandon(self, doing: str) -> None:
        self._abandoned.set()
        self._done.set()
        _log.error("observer %s took longer than %.3g s in %s; not called again", self._entry, self._limit_s, doing)
