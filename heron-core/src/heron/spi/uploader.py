"""Contract of the uploader family: brings a topology's package to where its containers can fetch it."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from heron.spi.driver import Driver

__all__ = ["CAPABILITIES", "SPI_VERSION", "Uploader"]

SPI_VERSION = 1

CAPABILITIES = frozenset({"files", "server", "shared"})
"""``shared``: what one host uploads every host can download. ``files``: packages are files of the machine where it is
used. ``server``: they are kept by one, which may be away."""


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
