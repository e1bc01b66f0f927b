"""How stores name packages: ``NAME-DIGEST.tar.gz`` with the whole SHA-256, so that a name has one content for ever.

Names come back from stores and URIs that others may have written to, so they are taken apart as strictly as they are
put together: nothing in one can lead elsewhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from heron.errors import PackageError

__all__ = ["PackageName"]

_NAME = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_FILE = re.compile(r"(?P<name>.+)-(?P<digest>[0-9a-f]{64})\.tar\.gz")
_NAME_LIMIT = 180  # with digest and ending it stays below 255 bytes, where file names of most stores end


@dataclass(frozen=True, slots=True)
class PackageName:
    """The name a package was given, and the SHA-256 of its content, hexadecimal."""

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
    def file(self) -> str:
        """The last part of its path, key or URL."""
        return f"{self.name}-{self.digest}.tar.gz"

    @classmethod
    def of_file(cls, file: str) -> PackageName | None:
        """The inverse of `file`; None when it is not of that form."""
        found = _FILE.fullmatch(file)
        if found is None or not _NAME.fullmatch(found["name"]) or len(found["name"]) > _NAME_LIMIT:
            return None
        return cls(found["name"], found["digest"])
