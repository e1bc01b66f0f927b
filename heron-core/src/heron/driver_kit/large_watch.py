"""A watch of values that may be split over several nodes: tells whole ones."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol, TypeAlias

from heron.errors import StateError, StateUnavailableError
from heron.spi.statemgr import Versioned, Watch

__all__ = ["REREAD_S", "LargeWatch", "OnChange", "Settled"]

REREAD_S = 0.1
"""Between two attempts to read what is not there yet."""

OnChange: TypeAlias = Callable[[Versioned | None], None]

_NOTHING = 0  # no version

_log = logging.getLogger(__name__)


class Settled(Protocol):
    """Reads the parts of what the node was just now, or of what it is since; ends with StateError at `stop`."""

    def __call__(self, present: Versioned | None, stop: threading.Event, /) -> Versioned | None: ...


class LargeWatch:
    """Implements `heron.spi.statemgr.Watch`.

    The parts of a value are read on the thread that tells of the node. While the store does not answer that thread
    waits with them, as it would have nothing else to tell. What was replaced meanwhile is told as it is by then, and
    not once more when the store tells of it.
    """

    def __init__(self, settled: Settled, on_change: OnChange, on_close: Callable[[LargeWatch], None]) -> None:
        self._settled = settled
        self._on_change = on_change
        self._on_close = on_close
        self._closed = threading.Event()
        self._begun = False
        self._told: int | None = _NOTHING
        self._inner: Watch | None = None
        self._error: StateError | None = None

    def begin(self, watch: Callable[[OnChange], Watch]) -> None:
        """Raises StateError when the first value cannot be read."""
        self._inner = watch(self._tell)
        if self._error is not None:
            self.close()
            raise self._error

    def end(self) -> None:
        """Makes no further call; waits for none that is under way."""
        self._closed.set()

    def close(self) -> None:
        self.end()
        if self._inner is not None:
            self._inner.close()
        self._on_close(self)

    def _tell(self, present: Versioned | None) -> None:
        is_first, self._begun = not self._begun, True
        try:
            whole = self._settled(present, self._closed) if is_first else self._awaited(present)
        except StateError as error:
            if is_first:
                self._error = error  # the caller's, who is still waiting
            elif not self._closed.is_set():
                _log.warning("a watched node cannot be read: %s", error)
            return
        version = None if whole is None else whole.version
        if version != self._told and not self._closed.is_set():
            self._told = version
            self._on_change(whole)

    def _awaited(self, present: Versioned | None) -> Versioned | None:
        """As `_settled` gives it when the store answers."""
        while True:
            try:
                return self._settled(present, self._closed)
            except StateUnavailableError:
                if self._closed.wait(REREAD_S):
                    raise
