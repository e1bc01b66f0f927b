"""The names of stored packages and their URIs: ``file:///ROOT/NAME-DIGEST16.tar.gz#sha256=DIGEST64``.

A URI comes back to us from state that others may have written, so it is taken apart as strictly as a name is put
together: nothing in it can lead out of the root folder.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote, urlsplit

from heron.errors import PackageError

__all__ = ["StoredPackage"]

_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_FILE = re.compile(r"(?P<name>.+)-(?P<short>[0-9a-f]{16})\.tar\.gz")
_FRAGMENT = re.compile(r"sha256=(?P<digest>[0-9a-f]{64})")
_NAME_LIMIT = 200  # a file name ends at 255 bytes, and the digest, the ending and a temporary mark join this one


@dataclass(frozen=True, slots=True)
class StoredPackage:
    """A package in the root folder: the name it was given and the SHA-256 of its content, hexadecimal."""

    root: Path
    name: str
    digest: str

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name) or len(self.name) > _NAME_LIMIT:
            msg = (
                f"package name {self.name!r:.80} is refused; use letters, digits, '_', '-' and inner dots, "
                f"at most {_NAME_LIMIT} characters"
            )
            raise PackageError(msg)

    @property
    def path(self) -> Path:
        """Where the package is stored."""
        return self.root / f"{self.name}-{self.digest[:16]}.tar.gz"

    @property
    def uri(self) -> str:
        """What finds the package again and proves that it is the same."""
        return f"file://{quote(str(self.path))}#sha256={self.digest}"

    @classmethod
    def of_path(cls, path: Path) -> StoredPackage | None:
        """The package that a file's name speaks of, as far as that knows its digest; None for other files."""
        file = _FILE.fullmatch(path.name)
        if file is None or not _NAME.fullmatch(file["name"]):
            return None
        return cls(path.parent, file["name"], file["short"].ljust(64, "0"))

    @classmethod
    def from_uri(cls, root: Path, uri: str) -> StoredPackage:
        """The package that a URI names.

        Raises:
            PackageError: when the URI is not one of `uri`'s form, or names a file outside `root`.
        """
        parts = urlsplit(uri)
        path = Path(unquote(parts.path))
        file = _FILE.fullmatch(path.name)
        fragment = _FRAGMENT.fullmatch(parts.fragment)
        if parts.scheme != "file" or parts.netloc or parts.query or file is None or fragment is None:
            msg = f"package URI {uri!r:.200} is not of the form file:///ROOT/NAME-DIGEST.tar.gz#sha256=…"
            raise PackageError(msg)
        if path.parent != root:
            msg = (
                f"package URI {uri!r:.200} leads out of uploader.root, {str(root)!r}; "
                f"use the profile that it was uploaded with"
            )
            raise PackageError(msg)
        package = cls(root, file["name"], fragment["digest"])
        if package.path != path:
            msg = f"package URI {uri!r:.200} contradicts itself; submit the topology again"
            raise PackageError(msg)
        return package
