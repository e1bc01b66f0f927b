"""The bar for an upload; imported only where stderr is a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bars

from heron_cli.topologies.progress import BytesMoved
from heron_cli.view.console import open_console

__all__ = ["upload_bar"]


@contextmanager
def upload_bar(size_bytes: int, console: Console | None = None) -> Iterator[BytesMoved]:
    """Show a bar in this block; it shows what the given function receives, and is gone afterwards."""
    columns = ("uploading the package", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console or open_console(stderr=True), transient=True) as bars:
        bar = bars.add_task("", total=size_bytes)
        yield lambda moved, total: bars.update(bar, completed=moved, total=total)
