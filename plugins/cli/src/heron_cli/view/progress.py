"""What a command says while its steps take their time: nothing, or a bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, cast

from heron.driver_kit.loading import load_object
from heron.driver_kit.redaction import redact_for_command
from heron.errors import PackageError
from heron.spi.scheduler import Scheduler
from heron.spi.uploader import Uploader

__all__ = ["WATCHED_BYTES", "Moved", "Progress", "QuietProgress", "interruptible", "progress"]

WATCHED_BYTES = 4 * 1024 * 1024
"""An upload of so many bytes is worth a bar: they take a second on a line of 32 Mbit/s."""

Moved = Callable[[int, int], None]
"""Is told how many bytes of how many have moved."""

_UploadBar = Callable[[int], AbstractContextManager[Moved]]


class Progress(Protocol):
    """Is told of each step before it begins."""

    def step(self, text: str) -> None:
        """The next step begins.

        Raises:
            KeyboardInterrupt: when the user wants no further steps.
        """
        ...

    def note(self, text: str) -> None:
        """Something that the user should know."""
        ...

    def uploading(self, uploader: Uploader, size_bytes: int) -> AbstractContextManager[None]:
        """In this block `uploader` uploads so many bytes.

        Raises:
            KeyboardInterrupt: when the user does not want it any longer.
        """
        ...

    def scheduling(self, scheduler: Scheduler) -> AbstractContextManager[None]:
        """In this block `scheduler` takes a job over.

        Raises:
            KeyboardInterrupt: when the user does not want it any longer, at its end at the latest.
        """
        ...


class QuietProgress:
    """Says the notes only, and shows large uploads, on stderr; between two steps it looks whether it is cancelled."""

    def __init__(self, cancelled: Callable[[], bool] = lambda: False) -> None:
        self._cancelled = cancelled

    def step(self, text: str) -> None:
        self._look()

    def note(self, text: str) -> None:
        print(f"heron: note: {redact_for_command(text)}", file=sys.stderr)

    @contextmanager
    def uploading(self, uploader: Uploader, size_bytes: int) -> Iterator[None]:
        bar: AbstractContextManager[Moved] = nullcontext(_silent)
        if size_bytes >= WATCHED_BYTES and sys.stderr.isatty():
            upload_bar = cast("_UploadBar", load_object("heron_cli.view.upload_bar:upload_bar"))
            bar = upload_bar(size_bytes)
        with bar as tell, interruptible(uploader, self._cancelled, tell):
            yield

    @contextmanager
    def scheduling(self, scheduler: Scheduler) -> Iterator[None]:
        scheduler.follow(self._look)
        yield
        self._look()

    def _look(self) -> None:
        if self._cancelled():
            raise KeyboardInterrupt


@contextmanager
def interruptible(uploader: Uploader, cancelled: Callable[[], bool], tell: Moved) -> Iterator[None]:
    """In this block `tell` hears what `uploader` moves, and a wish to end ends it: when bytes move, or it fails.

    Raises:
        KeyboardInterrupt: when that was so.
    """

    def moved(moved_bytes: int, total_bytes: int) -> None:
        if cancelled():
            raise KeyboardInterrupt
        tell(moved_bytes, total_bytes)

    uploader.follow(moved)
    try:
        yield
    except PackageError as error:
        if cancelled():
            raise KeyboardInterrupt from error
        raise
    finally:
        uploader.follow(_silent)


def _silent(_moved_bytes: int, _total_bytes: int) -> None:
    pass


@contextmanager
def progress(steps: int, cancelled: Callable[[], bool] = lambda: False) -> Iterator[Progress]:
    """A bar of so many steps where stderr is a terminal; it is gone at the end."""
    if not sys.stderr.isatty():
        yield QuietProgress(cancelled)
        return
    make = cast("Callable[[int, Callable[[], bool]], _Bar]", load_object("heron_cli.view.progress_bar:ProgressBar"))
    bar = make(steps, cancelled)  # loaded by name because rich costs 50 ms
    try:
        yield bar
    finally:
        bar.close()


class _Bar(Progress, Protocol):
    def close(self) -> None: ...
