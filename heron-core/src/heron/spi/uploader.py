"""Contract of the uploader family: brings a topology's package to where its containers can fetch it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from heron.errors import PackageError
from heron.spi.driver import Driver

__all__ = ["CAPABILITIES", "OLDEST_SPI_VERSION", "SPI_VERSION", "PackageEntry", "Progress", "Uploader"]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1

CAPABILITIES = frozenset({"files", "listing", "server", "shared"})
"""``shared``: what one host uploads every host can download. ``files``: packages are files of the machine where it is
used. ``server``: they are kept by one, which may be away. ``listing``: `Uploader.packages` lists them."""


class Progress(Protocol):
    """Is told how far an upload or download is; returns at once."""

    def __call__(self, moved_bytes: int, total_bytes: int, /) -> None:
        """`moved_bytes` never falls while one package moves; the last call of one that succeeds has them equal."""


@dataclass(frozen=True, slots=True)
class PackageEntry:
    """A stored package, as `Uploader.packages` lists it."""

    uri: str
    """What `upload` returned for it, and `undo` takes."""
    name: str
    """The name that `upload` was given: that of the topology."""
    size_bytes: int
    """What it takes up in the store."""
    age_s: float
    """Since when it is stored, by the clock of the store on both ends: other machines' clocks do not matter."""
    whole: bool = True
    """False for what an upload has left that did not come to its end."""


class Uploader(Driver):
    """Moves package files. Names are content-addressed, so that two uploads never overwrite each other.

    `upload` and `undo` are called by commands, `download` by each executor; all from the main thread; they may block
    for as long as bytes move, and no longer than 30 s without progress. Source: Heron's ``IUploader``.
    """

    @abstractmethod
    def upload(self, package: Path, name: str) -> str:
        """Stores the file and returns the URI for `download`, which contains its SHA-256 in 64 hexadecimal digits.

        `name` is the first part of the stored name: letters, digits, ``_``, ``-`` and inner dots.

        After success the file is there whole; after failure nothing is, or only what `undo` or a later upload of
        the same content replaces. An upload of the same content again returns the same URI.

        Raises:
            PackageError: when it cannot be stored, or the name has other characters; names the place, the reason
                and the remedy.
        """

    @abstractmethod
    def undo(self, uri: str) -> None:
        """Removes what `upload` stored; one that is not there is no error.

        Raises:
            PackageError: when the URI is not one that `upload` of this driver can have returned, or it cannot be
                removed.
        """

    @abstractmethod
    def download(self, uri: str, target: Path) -> None:
        """Fetches the package into the file `target`, whole and with its SHA-256 checked, or not at all.

        Raises:
            PackageError: when it is not there, cannot be read, or differs from its SHA-256.
        """

    def packages(self) -> tuple[PackageEntry, ...]:
        """All that is stored where this driver stores, in no order; with the capability ``listing`` only.

        What has another form than `upload` gives it is not listed. Called by commands, from the main thread; may block
        for as long as the list comes in, and no longer than 30 s without progress.

        Raises:
            PackageError: when the store does not answer, refuses, or has no way to list.
        """
        msg = f"{type(self).__name__} cannot list its packages; look where it stores them"
        raise PackageError(msg)

    def follow(self, progress: Progress) -> None:
        """From now on `progress` is told how `upload` and `download` come on, if the driver can tell."""
        self._progress = progress

    _progress: Progress | None = None

    def _moved(self, moved_bytes: int, total_bytes: int) -> None:
        """For drivers: call it as bytes move."""
        if self._progress is not None:
            self._progress(moved_bytes, total_bytes)
