"""Watches values that may be split over several nodes, and reports only complete values."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import Protocol, TypeAlias

from heron.errors import StateError, StateUnavailableError
from heron.spi.statemgr import Versioned, Watch

__all__ = ["REREAD_S", "CompleteValue", "LargeWatch", "OnChange"]

REREAD_S = 0.1
"""Seconds between two attempts to read a part that is missing."""

OnChange: TypeAlias = Callable[[Versioned | None], None]

_NOTHING = 0  # never a version

_log = logging.getLogger(__name__)


class CompleteValue(Protocol):
    """Reads the parts of the node, or of a later version; raises StateError when `stop` is set."""

    def __call__(self, present: Versioned | None, stop: threading.Event, /) -> Versioned | None: ...


class LargeWatch:
    """Implements `heron.spi.statemgr.Watch`.

    The thread that reports the node also reads the parts. While the store does not answer, that thread waits, since it
    has nothing else to report. If the value is replaced meanwhile, the watch reports the new value once.
    """

    def __init__(
        self, complete_value: CompleteValue, on_change: OnChange, on_close: Callable[[LargeWatch], None]
    ) -> None:
        self._complete_value = complete_value
        self._on_change = on_change
        self._on_close = on_close
        self._closed = threading.Event()
        self._begun = False
        self._reported: int | None = _NOTHING
        self._inner: Watch | None = None
        self._error: StateError | None = None

    def begin(self, watch: Callable[[OnChange], Watch]) -> None:
        """Start the watch; raise StateError when the first value cannot be read."""
        self._inner = watch(self._report)
        if self._error is not None:
            self.close()
            raise self._error

    def end(self) -> None:
        """Make no further call; does not wait for a call that is in progress."""
        self._closed.set()

    def close(self) -> None:
        self.end()
        if self._inner is not None:
            self._inner.close()
        self._on_close(self)

    def _report(self, present: Versioned | None) -> None:
        is_first, self._begun = not self._begun, True
        try:
            whole = self._complete_value(present, self._closed) if is_first else self._when_available(present)
        except StateError as error:
            if is_first:
                self._error = error  # `begin` raises it
            elif not self._closed.is_set():
                _log.warning("a watched node cannot be read: %s", error)
            return
        version = None if whole is None else whole.version
        if version != self._reported and not self._closed.is_set():
            self._reported = version
            self._on_change(whole)

    def _when_available(self, present: Versioned | None) -> Versioned | None:
        """Call `_complete_value` until the store answers."""
        while True:
            try:
                return self._complete_value(present, self._closed)
            except StateUnavailableError:
                if self._closed.wait(REREAD_S):
                    raise
