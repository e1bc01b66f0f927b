"""Shows a run to a person: the author's output on stdout, messages of Heron on stderr."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from typing import Protocol

from heron.clock import monotonic_s, wall_s
from heron.driver_kit.redaction import redact_for_command
from heron.ipc.documents.status import TopologyStatus
from heron_cli.view.status_line import status_line
from heron_cli.view.text import printable, printable_and_colours

__all__ = ["GuardedView", "PlainView", "View"]

_PERIOD_S = 2.0


class View(Protocol):
    """Shows one run."""

    def show(self, status: TopologyStatus) -> None:
        """Show the current status; called often."""
        ...

    def lines(self, texts: Sequence[str]) -> None:
        """Print lines of the author's program."""
        ...

    def note(self, text: str) -> None:
        """Print a message."""
        ...

    def close(self) -> None:
        """Stop drawing; idempotent."""
        ...


class PlainView:
    """Prints at most one line every two seconds, for logs and pipes."""

    def __init__(self) -> None:
        self._shown_at_s = monotonic_s()
        self._shown = ""

    def show(self, status: TopologyStatus) -> None:
        """Print the status when it has changed and the last line is at least two seconds old."""
        text = status_line(status, wall_s())
        if monotonic_s() - self._shown_at_s >= _PERIOD_S and text != self._shown:
            self._shown_at_s = monotonic_s()
            self._shown = text
            self.note(text)

    def lines(self, texts: Sequence[str]) -> None:
        """Print the author's lines: unchanged on a pipe, with their colours on a terminal."""
        text = "\n".join(texts)
        print(printable_and_colours(text) if sys.stdout.isatty() else text, flush=True)

    def note(self, text: str) -> None:
        """Print a line on stderr."""
        print(printable(text), file=sys.stderr, flush=True)

    def close(self) -> None:
        """Do nothing."""


class GuardedView:
    """Passes calls to a view. After a write has failed, `unread` is true and further output is discarded."""

    def __init__(self, view: View) -> None:
        self._view = view
        self.unread = False

    def show(self, status: TopologyStatus) -> None:
        """As `View`."""
        self._guard(lambda: self._view.show(status))

    def lines(self, texts: Sequence[str]) -> None:
        """As `View`."""
        self._guard(lambda: self._view.lines(texts))

    def note(self, text: str) -> None:
        """As `View`."""
        self._guard(lambda: self._view.note(redact_for_command(text)))

    def close(self) -> None:
        """As `View`."""
        self._guard(self._view.close)

    def _guard(self, action: Callable[[], None]) -> None:
        try:
            action()
        except OSError:
            self.unread = True
            _discard_output()


def _discard_output() -> None:
    """Redirect a broken stdout or stderr to /dev/null, so that the last flush of the interpreter does not fail."""
    null = os.open(os.devnull, os.O_WRONLY)
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(null, stream.fileno())
    os.close(null)
