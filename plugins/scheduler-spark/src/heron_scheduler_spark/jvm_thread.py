"""Calls into Spark's JVM, made in a thread of their own: a JVM that pauses or hangs holds up nobody else."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from heron.clock import monotonic_s

__all__ = ["JvmThread"]

T = TypeVar("T")


class JvmThread:
    """Used from one thread, which hands in calls and gets their answers, in that order."""

    def __init__(self, wake: Callable[[], None]) -> None:
        """`wake` is called from the other thread when there is something to `deliver`."""
        self._wake = wake
        self._calls: queue.SimpleQueue[Callable[[], Callable[[], None]]] = queue.SimpleQueue()
        self._answers: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._since_s: float | None = None
        threading.Thread(target=self._work, name="jvm-calls", daemon=True).start()

    def ask(self, call: Callable[[], T], then: Callable[[T], None] = lambda _: None) -> None:
        """Has `call` made; `deliver` gives its result to `then`, or raises what it raised."""

        def made() -> Callable[[], None]:
            try:
                return partial(then, call())
            except Exception as error:  # it is the caller's: without an answer it would wait for ever
                return partial(_fail, error)

        self._calls.put(made)

    def deliver(self) -> None:
        """Passes on the answers that have come."""
        while not self._answers.empty():
            self._answers.get()()

    @property
    def silent_s(self) -> float:
        """For how long the call that is being made has had no answer (s); 0 when there is none."""
        since_s = self._since_s
        return 0.0 if since_s is None else monotonic_s() - since_s

    def _work(self) -> None:
        while True:
            call = self._calls.get()
            self._since_s = monotonic_s()
            answer = call()
            self._since_s = None
            self._answers.put(answer)
            self._wake()


def _fail(error: Exception) -> None:
    raise error
