"""Where packages are stored, and their URIs: ``file:///ROOT/NAME-DIGEST.tar.gz``.

A URI comes back to us from state that others may have written, so nothing in it can lead out of the root folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from heron.driver_kit.packages import PackageName
from heron.errors import PackageError

__all__ = ["StoredPackage"]


@dataclass(frozen=True, slots=True)
class StoredPackage:
    """A package in the root folder."""

    root: Path
    name: PackageName

    @property
    def path(self) -> Path:
        """Where the package is stored."""
        return self.root / self.name.file

    @property
    def digest(self) -> str:
        """The SHA-256 that its content has, unless it is damaged."""
        return self.name.digest

    @property
    def uri(self) -> str:
        """What finds the package again and proves that it is the same."""
        return f"file://{quote(str(self.path))}"

    @classmethod
    def of_path(cls, path: Path) -> StoredPackage | None:
        """The package that a file's name speaks of; None for other files."""
        name = PackageName.of_file(path.name)
        return None if name is None else cls(path.parent, name)

    @classmethod
    def from_uri(cls, root: Path, uri: str) -> StoredPackage:
        """The package that a URI names.

        Raises:
            PackageError: when the URI is not one of `uri`'s form, or names a file outside `root`.
        """
        parts = urlsplit(uri)
        package = cls.of_path(Path(unquote(parts.path)))
        if package is None or uri != package.uri:
            msg = f"package URI {uri!r:.200} is not of the form file:///ROOT/NAME-DIGEST.tar.gz"
            raise PackageError(msg)
        if package.root != root:
            msg = (
                f"package URI {uri!r:.200} leads out of uploader.root, {str(root)!r}; "
                f"use the profile that it was uploaded with"
            )
            raise PackageError(msg)
        return package
