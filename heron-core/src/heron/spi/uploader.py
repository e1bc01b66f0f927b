"""Contract of the uploader family, which stores the package of a topology where its containers can fetch it."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import NoReturn, Protocol

from heron.errors import PackageError
from heron.spi.driver import Driver

__all__ = ["CAPABILITIES", "LATEST", "OLDEST_SPI_VERSION", "SPI_VERSION", "PackageEntry", "Progress", "Uploader"]

SPI_VERSION = 1
OLDEST_SPI_VERSION = 1

CAPABILITIES = frozenset({"files", "listing", "server", "shared", "tags"})
"""``shared``: every host can download what one host uploaded. ``files``: packages are files of the machine that uses
them. ``server``: a server keeps them, and it may be away. ``listing``: `Uploader.packages` lists them. ``tags``: names
for versions of a package, see `Uploader.tag`; it needs ``listing``."""

LATEST = "latest"
"""The tag that each upload moves to its package. It keeps no package."""


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
    version: str = ""
    """The SHA-256 of the package, hexadecimal; a driver with the flag ``tags`` sets it."""
    tags: tuple[str, ...] = ()
    """The tags of `name` that mean this package now, sorted."""


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

        A package that has a tag other than `LATEST` stays.

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

    def tag(self, uri: str, tag: str) -> None:
        """Let the tag mean this package from now on; needs the flag ``tags``.

        A tag belongs to the name of the package. It has 1 to 40 letters, digits, ``_``, ``-`` and inner dots. It is not
        a hexadecimal number of 8 digits or more, which is a version. It moves at once: a caller of `tagged` gets the
        package before or after. Commands call this method, `untag` and `tagged` from the main thread.

        Raises:
            PackageError: when the package does not exist, the tag has another form, or the store does not take it.
        """
        self._no_tags()

    def untag(self, name: str, tag: str) -> None:
        """Remove a tag of `name`, and no package; a missing tag is not an error. Needs the flag ``tags``.

        Raises:
            PackageError: when the tag cannot be removed.
        """
        self._no_tags()

    def tagged(self, name: str, tag: str) -> PackageEntry:
        """Return the package that the tag of `name` means now; its `tags` may lack others. Needs the flag ``tags``.

        Raises:
            PackageError: when there is no such tag, or the package is one that `download` would refuse unread.
        """
        self._no_tags()

    def _no_tags(self) -> NoReturn:
        msg = f"{type(self).__name__} has no tags; use a profile whose uploader has them, such as oci"
        raise PackageError(msg)

    def follow(self, progress: Progress) -> None:
        """Report the progress of `upload` and `download` to `progress` from now on, if the driver can."""
        self._progress = progress

    _progress: Progress | None = None

    def _moved(self, moved_bytes: int, total_bytes: int) -> None:
        """Report progress; a driver calls it while bytes move."""
        if self._progress is not None:
            self._progress(moved_bytes, total_bytes)
