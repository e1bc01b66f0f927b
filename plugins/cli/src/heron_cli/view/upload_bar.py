"""The bar that shows how an upload comes on; imported only where there is a terminal and something to wait for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, TimeRemainingColumn, TransferSpeedColumn
from rich.progress import Progress as Bars

from heron_cli.view.progress import Moved

__all__ = ["upload_bar"]


@contextmanager
def upload_bar(size_bytes: int, console: Console | None = None) -> Iterator[Moved]:
    """In this block there is a bar, which shows what the function that is given is told; it is gone afterwards."""
    columns = ("uploading the package", BarColumn(), DownloadColumn(), TransferSpeedColumn(), TimeRemainingColumn())
    with Bars(*columns, console=console or Console(stderr=True), transient=True) as bars:
        bar = bars.add_task("", total=size_bytes)
        yield lambda moved, total: bars.update(bar, completed=moved, total=total)
