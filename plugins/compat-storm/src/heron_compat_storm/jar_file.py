"""What can be read from the jar of a topology without Java."""

from __future__ import annotations

import re
import shutil
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from heron.errors import UsageError

__all__ = ["RESOURCES", "JarFile"]

RESOURCES = "resources"
"""The folder of a jar with the scripts of components in other languages."""

_CLASS = ".class"
_SUBMITTER = "org/apache/storm/StormSubmitter"
_MAIN = (b"main", b"([Ljava/lang/String;)V")
_STORM = b"org/apache/storm/"
_MOST_BYTES = 1 << 20  # a class with a main method is small
_ANONYMOUS = re.compile(r"\$\d")


class JarFile:
    """A jar that exists, at `path`.

    Raises:
        UsageError: when the file is not a jar.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        with self._opened() as archive:
            self._names = frozenset(archive.namelist())

    @property
    def has_storm(self) -> bool:
        """Whether the jar brings Storm itself."""
        return _SUBMITTER + _CLASS in self._names

    @property
    def is_for_old_storm(self) -> bool:
        """Whether the jar brings Storm before 1.0, whose packages have other names."""
        return f"backtype/storm/StormSubmitter{_CLASS}" in self._names

    def has_class(self, name: str) -> bool:
        """Return whether the jar has the class ``package.Class``."""
        return name.replace(".", "/") + _CLASS in self._names

    def programs(self) -> list[str]:
        """Return the classes of the jar that have a main method and use Storm; this reads all classes."""
        found: list[str] = []
        with self._opened() as archive:
            for each in archive.infolist():
                name = each.filename
                if not name.endswith(_CLASS) or name.startswith("META-INF/") or _ANONYMOUS.search(name):
                    continue
                if each.file_size > _MOST_BYTES:
                    continue
                if name.encode().startswith(_STORM) and "/starter/" not in name:
                    continue  # Storm's own
                text = archive.read(each)
                if all(part in text for part in (*_MAIN, _STORM)):
                    found.append(name.removesuffix(_CLASS).replace("/", "."))
        return sorted(found)

    def write_resources(self, folder: Path) -> bool:
        """Write the files of `RESOURCES` below `folder`; return whether there are any.

        Raises:
            UsageError: when an entry would leave the folder.
        """
        wanted = [each for each in self._names if each.startswith(f"{RESOURCES}/") and not each.endswith("/")]
        with self._opened() as archive:
            for name in sorted(wanted):
                target = folder / name
                if ".." in Path(name).parts:
                    msg = f"{self.path}: the entry {name!r} would leave its folder; do not trust this jar"
                    raise UsageError(msg)
                target.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(name) as source, target.open("wb") as copy:
                    shutil.copyfileobj(source, copy)
        return bool(wanted)

    @contextmanager
    def _opened(self) -> Iterator[zipfile.ZipFile]:
        try:
            with zipfile.ZipFile(self.path) as archive:
                yield archive
        except (OSError, zipfile.BadZipFile, NotImplementedError, EOFError) as error:
            msg = f"{self.path}: is not a jar that can be read: {error}; build it again"
            raise UsageError(msg) from error
