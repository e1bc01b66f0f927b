"""A view whose reader may leave: a terminal that is closed, a pipe into ``head``.

Then the run has to end like any other, with its report and nothing left behind, instead of by an exception wherever
something was to be shown.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from heron.driver_kit.redaction import redact_for_command
from heron.ipc.status import TopologyStatus
from heron_cli.view.view import View

__all__ = ["GuardedView"]


class GuardedView:
    """Passes everything on; once that has failed, `unread` is true and what nobody reads is thrown away."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.unread = False

    def show(self, status: TopologyStatus) -> None:
        """`View`."""
        self._guard(lambda: self._view.show(status))

    def lines(self, texts: Sequence[str]) -> None:
        """`View`."""
        self._guard(lambda: self._view.lines(texts))

    def note(self, text: str) -> None:
        """`View`."""
        self._guard(lambda: self._view.note(redact_for_command(text)))

    def close(self) -> None:
        """`View`."""
        self._guard(self._view.close)

    def _guard(self, action: Callable[[], None]) -> None:
        try:
            action()
        except OSError:
            self.unread = True
            _throw_away()


def _throw_away() -> None:
    """Leads what cannot be written to nowhere, so that the interpreter's own last flush does not fail either."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(nowhere, stream.fileno())
    os.close(nowhere)
