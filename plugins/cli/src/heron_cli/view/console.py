"""A console for tables, trees and bars, which shows control characters of texts and never sends them."""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from heron_cli.view.text import output_width, printable

__all__ = ["open_console"]


def open_console(*, stderr: bool = False, highlight: bool = True) -> Console:
    """Return a console on stdout or stderr. Texts are no markup: a name may have brackets."""
    width = None if stderr else output_width()
    return _PrintableConsole(stderr=stderr, width=width, highlight=highlight, markup=False, emoji=False)


class _PrintableConsole(Console):
    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """Make every text printable; segments that move the cursor are of rich itself."""
        for each in super().render(renderable, options):
            yield each if each.control else Segment(printable(each.text), each.style)
