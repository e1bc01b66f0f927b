"""The bar that shows the steps of a command on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

from heron.driver_kit.redaction import redact_for_command
from heron.spi.scheduler import Scheduler
from heron.spi.uploader import Uploader
from heron_cli.view.progress import QuietProgress

__all__ = ["ProgressBar"]


class ProgressBar:
    """Implements `heron_cli.view.progress.Progress`; the bar vanishes when it is closed."""

    def __init__(self, steps: int, cancelled: Callable[[], bool]) -> None:
        self._cancelled = cancelled
        self._begun = 0
        columns = (SpinnerColumn(), BarColumn(20), MofNCompleteColumn(), TextColumn("{task.description}"))
        self._progress = Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
        self._task = self._progress.add_task("", total=steps)
        self._progress.start()

    def step(self, text: str) -> None:
        if self._cancelled():
            raise KeyboardInterrupt
        self._progress.update(self._task, description=text, completed=self._begun)
        self._begun += 1

    def note(self, text: str) -> None:
        self._progress.console.print(f"heron: note: {redact_for_command(text)}", markup=False, highlight=False)

    @contextmanager
    def uploading(self, uploader: Uploader, size_bytes: int) -> Iterator[None]:
        self._progress.stop()  # two bars at a time would write over each other
        try:
            with QuietProgress(self._cancelled).uploading(uploader, size_bytes):
                yield
        finally:
            self._progress.start()

    def scheduling(self, scheduler: Scheduler) -> AbstractContextManager[None]:
        return QuietProgress(self._cancelled).scheduling(scheduler)

    def close(self) -> None:
        self._progress.stop()
