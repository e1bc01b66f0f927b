"""What a command says while its steps take their time: nothing, or a bar on a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol, cast

from heron.kernel.loading import load_object
from heron.kernel.secrets import spoken
from heron.spi.uploader import Uploader

__all__ = ["WATCHED_BYTES", "Progress", "QuietProgress", "progress"]

WATCHED_BYTES = 4 * 1024 * 1024
"""An upload of so many bytes is worth a bar: they take a second on a line of 32 Mbit/s."""

_UploadBar = Callable[[Uploader, int], AbstractContextManager[None]]


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
        """In this block `uploader` uploads so many bytes."""
        ...


class QuietProgress:
    """Says the notes only, and shows large uploads, on stderr; between two steps it looks whether it is cancelled."""

    def __init__(self, cancelled: Callable[[], bool] = lambda: False) -> None:
        self._cancelled = cancelled

    def step(self, text: str) -> None:
        if self._cancelled():
            raise KeyboardInterrupt

    def note(self, text: str) -> None:
        print(f"heron: note: {spoken(text)}", file=sys.stderr)

    def uploading(self, uploader: Uploader, size_bytes: int) -> AbstractContextManager[None]:
        if size_bytes < WATCHED_BYTES or not sys.stderr.isatty():
            return nullcontext()
        upload_bar = cast("_UploadBar", load_object("heron.submit.upload_bar:upload_bar"))
        return upload_bar(uploader, size_bytes)


@contextmanager
def progress(steps: int, cancelled: Callable[[], bool] = lambda: False) -> Iterator[Progress]:
    """A bar of so many steps where stderr is a terminal; it is gone at the end."""
    if not sys.stderr.isatty():
        yield QuietProgress(cancelled)
        return
    make = cast("Callable[[int, Callable[[], bool]], _Bar]", load_object("heron.submit.progress_bar:ProgressBar"))
    bar = make(steps, cancelled)  # loaded by name because rich costs 50 ms
    try:
        yield bar
    finally:
        bar.close()


class _Bar(Progress, Protocol):
    def close(self) -> None: ...
