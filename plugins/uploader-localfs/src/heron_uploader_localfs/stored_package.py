"""The path of a stored package and its URI ``file:///ROOT/NAME-DIGEST.tar.gz``.

The driver reads URIs from the state, which other people may have written. So a URI cannot lead out of the root folder.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from heron.errors import PackageError
from heron_driver_kit.packages import PackageName

__all__ = ["StoredPackage"]


@dataclass(frozen=True, slots=True)
class StoredPackage:
    """A package in the root folder."""

    root: Path
    name: PackageName

    @property
    def path(self) -> Path:
        return self.root / self.name.file

    @property
    def digest(self) -> str:
        """The SHA-256 of the undamaged content, hexadecimal."""
        return self.name.digest

    @property
    def uri(self) -> str:
        """The URI that `from_uri` parses."""
        return f"file://{quote(str(self.path))}"

    @classmethod
    def of_path(cls, path: Path) -> StoredPackage | None:
        """Parse the name of a file; None when the file is not a package."""
        name = PackageName.of_file(path.name)
        return None if name is None else cls(path.parent, name)

    @classmethod
    def from_uri(cls, root: Path, uri: str) -> StoredPackage:
        """Parse a URI.

        Raises:
            PackageError: when the URI does not have the form of `uri`, or names a file outside `root`.
        """
        parts = urlsplit(uri)
        package = cls.of_path(Path(unquote(parts.path)))
        if package is None or uri != package.uri:
            msg = (
                f"package URI {uri!r:.200} is not of the form file:///ROOT/NAME-DIGEST.tar.gz; "
                f"use the profile that it was uploaded with"
            )
            raise PackageError(msg)
        if package.root != root:
            msg = (
                f"package URI {uri!r:.200} leads out of uploader.root {str(root)!r}; "
                f"use the profile that it was uploaded with"
            )
            raise PackageError(msg)
        return package
