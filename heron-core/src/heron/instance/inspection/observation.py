"""A thread that observes its task for some seconds, because a command has asked. There is none while nobody asks."""

from __future__ import annotations

import logging
import threading
from abc import ABC, abstractmethod

from heron.clock import monotonic_s

__all__ = ["TaskObserver"]

_log = logging.getLogger(__name__)


class TaskObserver(ABC):
    """One observation. A subclass sets its own attributes, and then calls `__init__`, which begins at once."""

    what = ""
    """What is being done to the task: it follows ``task 7 is being``."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._stop = threading.Event()
        self._ends_s = monotonic_s() + seconds
        self._document = b""
        self._thread = threading.Thread(target=self._run, name=type(self).__name__.lower(), daemon=True)
        self._thread.start()

    def left_s(self) -> float:
        """The seconds until it is complete, at least."""
        return max(0.0, self._ends_s - monotonic_s())

    def is_alive(self) -> bool:
        """Whether it is under way."""
        return self._thread.is_alive()

    def document(self) -> bytes:
        """The encoded answer, when it is complete.

        Raises:
            RuntimeError: when it has failed; the log of the task has the reason.
        """
        if not self._document:
            msg = f"the {type(self).__name__} has failed; see the log of the task"
            raise RuntimeError(msg)
        return self._document

    def stop(self) -> None:
        """Ends it early, and waits for its thread."""
        self._stop.set()
        self._thread.join()

    @abstractmethod
    def _observe(self) -> bytes:
        """Observes until `_ends_s` or `_stop`, whichever is first; returns the encoded answer."""

    def _run(self) -> None:
        try:
            self._document = self._observe()
        except Exception:
            _log.exception("an observation of this task has failed")
