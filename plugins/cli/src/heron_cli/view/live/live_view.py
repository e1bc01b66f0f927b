"""The live table on a terminal; imported only when stderr is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich.live import Live
from rich.text import Text

from heron.clock import Clock, SystemClock
from heron.ipc.documents.status import TopologyStatus
from heron_cli.view.console import open_console
from heron_cli.view.status_table import status_table
from heron_cli.view.text import printable_and_colours

__all__ = ["LiveView"]

_PERIOD_S = 0.25


class LiveView:
    """A table that is redrawn in place, below the output of the author's program."""

    def __init__(self, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._console = open_console(stderr=True)
        self._same_screen = sys.stdout.isatty()
        self._live = Live(console=self._console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False)
        self._drawn_at_s = -_PERIOD_S
        self._status: TopologyStatus | None = None
        self._live.start()

    def show(self, status: TopologyStatus) -> None:
        """Redraw the table, at most four times a second."""
        self._status = status
        if self._clock.monotonic_s() - self._drawn_at_s >= _PERIOD_S:
            self._draw(status)

    def lines(self, texts: Sequence[str]) -> None:
        """Print above the table, or to stdout when stdout is not the terminal."""
        if self._same_screen:
            self._console.print(Text.from_ansi(printable_and_colours("\n".join(texts))), soft_wrap=True)
        else:
            print("\n".join(texts), flush=True)

    def note(self, text: str) -> None:
        """Print above the table."""
        self._console.print(Text(text), soft_wrap=True)

    def close(self) -> None:
        """Draw the last status, and leave the table on the screen."""
        if self._status:
            self._draw(self._status)
        self._live.stop()

    def _draw(self, status: TopologyStatus) -> None:
        self._drawn_at_s = self._clock.monotonic_s()
        self._live.update(status_table(status, self._clock.wall_s()), refresh=True)
