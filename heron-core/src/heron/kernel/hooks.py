"""Lifecycle events of role processes: each observer has a daemon thread of its own and a time limit.

An observer that takes longer than the limit is abandoned: named in the log once and not called again. One that
holds the interpreter lock holds the whole process; that cannot be helped from inside it. pluggy is imported only
when there is an observer.
"""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Protocol, cast

from heron.clock import monotonic_s
from heron.kernel.loading import load_object

__all__ = ["LIMIT_S", "Hooks", "ThreadedHooks"]

LIMIT_S = 5.0
"""An observer's call may take so long (the contract in `heron.spi.hooks`)."""

_BACKLOG = 1000  # events that wait for one observer; lifecycle events are rare, so more means that it hangs

_log = logging.getLogger(__name__)


class Hooks(Protocol):
    """Tells observers what happened; never raises because of one."""

    def notify(self, hook: str, **facts: object) -> None:
        """Announces the event `hook` with the facts its specification lists."""
        ...


class _Reaction(Protocol):
    @property
    def observer(self) -> str: ...
    @property
    def hook(self) -> str: ...
    @property
    def call(self) -> Callable[[], object]: ...


class _Observers(Protocol):
    """`heron.kernel.observers.Observers`, which is not imported where there are none."""

    def names(self) -> tuple[str, ...]: ...
    def reactions(self, hook: str, facts: dict[str, object]) -> Sequence[_Reaction]: ...


class ThreadedHooks:
    """Announces events without ever waiting for an observer."""

    def __init__(self, entries: Sequence[str], limit_s: float = LIMIT_S) -> None:
        self._observers: _Observers | None = None
        self._workers: dict[str, _Worker] = {}
        if entries:
            load = cast("Callable[[Sequence[str]], _Observers]", load_object("heron.kernel.observers:Observers.load"))
            self._observers = load(entries)
            self._workers = {name: _Worker(name, limit_s) for name in self._observers.names()}

    def notify(self, hook: str, **facts: object) -> None:
        """Hands the event to each observer's thread and returns at once."""
        if self._observers is None:
            return
        for reaction in self._observers.reactions(hook, facts):
            self._workers[reaction.observer].put(reaction)

    def close(self, timeout_s: float) -> None:
        """Lets the observers see what was announced so far, for at most that long in all."""
        deadline = monotonic_s() + timeout_s
        for worker in self._workers.values():
            worker.close(deadline - monotonic_s())


class _Worker:
    """The thread of one observer."""

    def __init__(self, name: str, limit_s: float) -> None:
        self._name = name
        self._limit_s = limit_s
        self._queue: queue.Queue[_Reaction | None] = queue.Queue(_BACKLOG)
        self._abandoned = threading.Event()
        self._done = threading.Event()
        threading.Thread(target=self._run, name=f"observer-{name}", daemon=True).start()

    def put(self, reaction: _Reaction) -> None:
        if self._abandoned.is_set():
            return
        try:
            self._queue.put_nowait(reaction)
        except queue.Full:
            _log.error("observer %s has %d events waiting; %s dropped", self._name, _BACKLOG, reaction.hook)

    def close(self, timeout_s: float) -> None:
        if not self._abandoned.is_set() and not self._queue.full():
            self._queue.put_nowait(None)
            self._done.wait(max(0.0, timeout_s))

    def _run(self) -> None:
        while (reaction := self._queue.get()) is not None and not self._abandoned.is_set():
            self._call(reaction)
        self._done.set()

    def _call(self, reaction: _Reaction) -> None:
        timer = threading.Timer(self._limit_s, self._abandon, (reaction.hook,))
        timer.daemon = True
        timer.start()
        try:
            reaction.call()
        except Exception:
            _log.exception("observer %s failed in %s", self._name, reaction.hook)
        finally:
            timer.cancel()

    def _abandon(self, hook: str) -> None:
        self._abandoned.set()
        self._done.set()
        _log.error("observer %s took longer than %.3g s in %s and is not called again", self._name, self._limit_s, hook)
