"""Contract of the uploader family, which stores the package of a topology where its containers can fetch it."""

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
"""``shared``: every host can download what one host uploaded. ``files``: packages are files of the machine that uses
them. ``server``: a server keeps them, and it may be away. ``listing``: `Uploader.packages` lists them."""


class Progress(Protocol):
    """Receives the progress of an upload or download; returns at once."""

    def __call__(self, moved_bytes: int, total_bytes: int, /) -> None:
        """`moved_bytes` never decreases during a transfer; a successful transfer ends with both equal."""


@dataclass(frozen=True, slots=True)
class PackageEntry:
    """A stored package in the list of `Uploader.packages`."""

    uri: str
    """The URI that `upload` returned and `undo` takes."""
    name: str
    """The argument `name` of `upload`: the name of the topology."""
    size_bytes: int
    """Its size in the store."""
    age_s: float
    """Seconds since it was stored. Both times come from the clock of the store."""
    whole: bool = True
    """False for the remains of an upload that was not completed."""


class Uploader(Driver):
    """Transfers package files. Names contain the digest of the content, so no upload overwrites another package.

    Commands call `upload` and `undo`, each executor calls `download`, all from the main thread. A call may block while
    bytes move, and at most 30 s without progress. Source: Heron's ``IUploader``.
    """

    @abstractmethod
    def upload(self, package: Path, name: str) -> str:
        """Store the file and return the URI for `download`, which contains the SHA-256 in 64 hexadecimal digits.

        `name` is the first part of the stored name: letters, digits, ``_``, ``-`` and inner dots.

        After success the file is stored completely. After failure nothing is stored, or only remains that `undo` or a
        later upload of the same content replaces. A second upload of the same content returns the same URI.

        Raises:
            PackageError: when the file cannot be stored, or the name has other characters; names the place, the reason
                and the remedy.
        """

    @abstractmethod
    def undo(self, uri: str) -> None:
        """Remove a package that `upload` stored; a missing package is not an error.

        Raises:
            PackageError: when `upload` of this driver cannot have returned the URI, or the package cannot be removed.
        """

    @abstractmethod
    def download(self, uri: str, target: Path) -> None:
        """Fetch the package into the file `target`, complete and with a checked SHA-256, or not at all.

        Raises:
            PackageError: when the package does not exist, cannot be read, or does not match its SHA-256.
        """

    def packages(self) -> tuple[PackageEntry, ...]:
        """Return all packages at the place where this driver stores them, in any order; needs the flag ``listing``.

        Files that `upload` cannot have written are left out. Commands call it from the main thread; it may block while
        the list arrives, and at most 30 s without progress.

        Raises:
            PackageError: when the store does not answer, refuses, or cannot list.
        """
        msg = f"{type(self).__name__} cannot list its packages; look where it stores them"
        raise PackageError(msg)

    def follow(self, progress: Progress) -> None:
        """Report the progress of `upload` and `download` to `progress` from now on, if the driver can."""
        self._progress = progress

    _progress: Progress | None = None

    def _moved(self, moved_bytes: int, total_bytes: int) -> None:
        """Report progress; a driver calls it while bytes move."""
        if self._progress is not None:
            self._progress(moved_bytes, total_bytes)
