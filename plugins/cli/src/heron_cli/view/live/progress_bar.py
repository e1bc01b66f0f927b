"""The bar for the steps of a command; imported only where stderr is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.progress import BarColumn, MofNCompleteColumn, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bars

from heron.driver_kit.redaction import redact_for_command
from heron.spi.uploader import Uploader
from heron_cli.view.console import open_console
from heron_cli.view.live.quiet_progress import QuietProgress

__all__ = ["ProgressBar"]


class ProgressBar(QuietProgress):
    """Implements `heron_cli.topologies.progress.Progress`; the bar vanishes when it is closed."""

    def __init__(self, steps: int, cancelled: Callable[[], bool]) -> None:
        super().__init__(cancelled)
        self._begun = 0
        columns = (SpinnerColumn(), BarColumn(20), MofNCompleteColumn(), TextColumn("{task.description}", markup=False))
        self._bars = Bars(*columns, TimeElapsedColumn(), console=open_console(stderr=True), transient=True)
        self._task = self._bars.add_task("", total=steps)
        self._bars.start()

    def step(self, text: str) -> None:
        super().step(text)
        self._bars.update(self._task, description=text, completed=self._begun)
        self._begun += 1

    def note(self, text: str) -> None:
        self._bars.console.print(f"heron: note: {redact_for_command(text)}", markup=False, highlight=False)

    @contextmanager
    def uploading(self, uploader: Uploader, size_bytes: int) -> Iterator[None]:
        self._bars.stop()  # two bars at the same time would overwrite each other
        try:
            with super().uploading(uploader, size_bytes):
                yield
        finally:
            self._bars.start()

    def close(self) -> None:
        self._bars.stop()
