"""Reports the steps of a long operation to its caller. `heron_cli.view.live` shows them on a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Protocol

from heron.errors import PackageError
from heron.spi.scheduler import Scheduler
from heron.spi.uploader import Uploader

__all__ = ["BytesMoved", "CancellableProgress", "CollectedNotes", "Progress", "follow_upload", "ignore_bytes"]

BytesMoved = Callable[[int, int], None]
"""Receives the number of bytes that have moved, and the total."""


class Progress(Protocol):
    """Receives each step before it begins, and can cancel the operation there."""

    def step(self, text: str) -> None:
        """Report that the next step begins.

        Raises:
            KeyboardInterrupt: when the operation is to be cancelled.
        """
        ...

    def note(self, text: str) -> None:
        """Report something that the user should know."""
        ...

    def uploading(self, uploader: Uploader, size_bytes: int) -> AbstractContextManager[None]:
        """Enclose an upload of `size_bytes` by `uploader`.

        Raises:
            KeyboardInterrupt: when the upload is to be cancelled.
        """
        ...

    def scheduling(self, scheduler: Scheduler) -> AbstractContextManager[None]:
        """Enclose the call that hands the job to `scheduler`.

        Raises:
            KeyboardInterrupt: when the operation is to be cancelled; at the end of the block at the latest.
        """
        ...


class CancellableProgress:
    """The part of a `Progress` that asks `cancelled`: before a step, while bytes move, while a scheduler waits."""

    def __init__(self, cancelled: Callable[[], bool] = lambda: False) -> None:
        self.cancelled = cancelled

    def step(self, text: str) -> None:
        """Check for a cancellation."""
        del text
        self._check()

    @contextmanager
    def uploading(self, uploader: Uploader, size_bytes: int) -> Iterator[None]:
        """Check for a cancellation while bytes move."""
        del size_bytes
        with follow_upload(uploader, self.cancelled, ignore_bytes):
            yield

    @contextmanager
    def scheduling(self, scheduler: Scheduler) -> Iterator[None]:
        """Check for a cancellation while the scheduler waits, and at the end."""
        scheduler.follow(self._check)
        try:
            yield
            self._check()
        finally:
            scheduler.follow(lambda: None)

    def _check(self) -> None:
        if self.cancelled():
            raise KeyboardInterrupt


class CollectedNotes(CancellableProgress):
    """A `Progress` that prints nothing and keeps the notes."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        """Keep the note."""
        self.notes.append(text)


@contextmanager
def follow_upload(uploader: Uploader, cancelled: Callable[[], bool], moved: BytesMoved) -> Iterator[None]:
    """In this block, pass what `uploader` moves to `moved`; a cancellation ends the transfer at the next bytes.

    Raises:
        KeyboardInterrupt: when it was cancelled.
    """

    def follow(moved_bytes: int, total_bytes: int) -> None:
        if cancelled():
            raise KeyboardInterrupt
        moved(moved_bytes, total_bytes)

    uploader.follow(follow)
    try:
        yield
    except PackageError as error:
        if cancelled():
            raise KeyboardInterrupt from error
        raise
    finally:
        uploader.follow(ignore_bytes)


def ignore_bytes(_moved_bytes: int, _total_bytes: int) -> None:
    """Do nothing, as a `BytesMoved`."""
