"""What a person sees of a run: the author's output on stdout, everything of Heron's own on stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Protocol

from heron.clock import monotonic_s, wall_s
from heron.ipc.status import ComponentStatus, Culprit, TopologyStatus

__all__ = ["PlainView", "View", "spoken_bytes", "spoken_count", "spoken_pressure", "status_line"]

_PERIOD_S = 2.0


class View(Protocol):
    """Shows one run."""

    def show(self, status: TopologyStatus) -> None:
        """The state now; called often."""
        ...

    def lines(self, texts: Sequence[str]) -> None:
        """Lines that the author's program printed."""
        ...

    def note(self, text: str) -> None:
        """Something to be read once."""
        ...

    def close(self) -> None:
        """Leaves the screen as it is; idempotent."""
        ...


class PlainView:
    """One line every two seconds, for logs and pipes."""

    def __init__(self) -> None:
        self._shown_at_s = monotonic_s()
        self._shown = ""

    def show(self, status: TopologyStatus) -> None:
        """A line, when the last one is old enough and says something else."""
        text = status_line(status, wall_s())
        if monotonic_s() - self._shown_at_s >= _PERIOD_S and text != self._shown:
            self._shown_at_s = monotonic_s()
            self._shown = text
            self.note(text)

    def lines(self, texts: Sequence[str]) -> None:
        """The author's lines, as they are."""
        print("\n".join(texts), flush=True)

    def note(self, text: str) -> None:
        """A line on stderr."""
        print(text, file=sys.stderr, flush=True)

    def close(self) -> None:
        """Nothing to leave."""


def spoken_count(count: float) -> str:
    """``12,345``."""
    return f"{count:,.0f}"


def spoken_bytes(count: int) -> str:
    """``512 B``, ``1.5 KiB``, ``8.0 MiB``."""
    amount = float(count)
    for unit in ("B", "KiB", "MiB"):
        if amount < 1024:
            return f"{amount:.0f} {unit}" if unit == "B" else f"{amount:.1f} {unit}"
        amount /= 1024
    return f"{amount:.1f} GiB"


def spoken_pressure(culprit: Culprit, wall_s: float) -> str:
    """``back pressure by count/5 for 12.3 s: the task is slow``; at a moment of the wall clock."""
    for_s = max(0.0, wall_s - culprit.since_s)
    why = f": {culprit.cause}" if culprit.cause else ""
    return f"back pressure by {culprit.component}/{culprit.task_id} for {for_s:.1f} s{why}"


def status_line(status: TopologyStatus, wall_s: float) -> str:
    """The whole status in one line, at a moment of the wall clock."""
    parts = [_component(each) for each in status.components]
    parts += [spoken_pressure(each, wall_s) for each in status.backpressure]
    return f"{status.topology} {status.state}: {'; '.join(parts)}"


def _component(each: ComponentStatus) -> str:
    counts = [f"{spoken_count(each.executed)} executed"] if each.kind == "bolt" else []
    counts.append(f"{spoken_count(each.emitted)} emitted")
    if each.failed:
        counts.append(f"{spoken_count(each.failed)} failed")
    queue = f", {spoken_bytes(each.queue_bytes)} queued" if each.queue_bytes else ""
    return f"{each.name} {', '.join(counts)} ({spoken_count(each.rate_per_s)}/s{queue})"
