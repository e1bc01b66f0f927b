"""Shows the steps of a command: nothing but notes on a pipe, a bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol, cast

from heron.driver_kit.loading import load_object
from heron_cli.topologies.progress import Progress
from heron_cli.view.live.quiet_progress import QuietProgress

__all__ = ["progress"]

_BAR = "heron_cli.view.live.progress_bar:ProgressBar"
"""Loaded by name because rich costs 50 ms."""


@contextmanager
def progress(steps: int, cancelled: Callable[[], bool] = lambda: False) -> Iterator[Progress]:
    """Show a bar of `steps` steps where stderr is a terminal; the bar is gone at the end."""
    if not sys.stderr.isatty():
        yield QuietProgress(cancelled)
        return
    bar = cast("_MakeBar", load_object(_BAR))(steps, cancelled)
    try:
        yield bar
    finally:
        bar.close()


class _Bar(Progress, Protocol):
    def close(self) -> None: ...


_MakeBar = Callable[[int, Callable[[], bool]], _Bar]
