"""The bars for the steps of a command and for an upload; imported only where stderr is a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import (
    BarColumn,
    DownloadColumn,
    MofNCompleteColumn,
    SpinnerColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
    TransferSpeedColumn,
)
from rich.progress import Progress as Bars

from heron.driver_kit.redaction import redact_for_command
from heron.spi.uploader import Uploader
from heron_cli.topologies.progress import BytesMoved
from heron_cli.view.live.progress_output import QuietProgress

__all__ = ["ProgressBar", "upload_bar"]


class ProgressBar(QuietProgress):
    """Implements `heron_cli.topologies.progress.Progress`; the bar vanishes when it is closed."""

    def __init__(self, steps: int, cancelled: Callable[[], bool]) -> None:
        super().__init__(cancelled)
        self._begun = 0
        columns = (SpinnerColumn(), BarColumn(20), MofNCompleteColumn(), TextColumn("{task.description}"))
        self._bars = Bars(*columns, TimeElapsedColumn(), console=Console(stderr=True), transient=True)
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


@contextmanager
def upload_bar(size_bytes: int, console: Console | None = None) -> Iterator[BytesMoved]:
    """Show a bar in this block; it shows what the given function receives, and is gone afterwards."""
    columns = ("uploading the package", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console or Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("", total=size_bytes)
        yield lambda moved, total: bars.update(bar, completed=moved, total=total)
