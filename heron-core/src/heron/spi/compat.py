"""What a compat plugin implements to run programs that were written for another system.

Each plugin has one class in the entry-point group ``heron.compat``. It may be one of these:

- a `CompatPackage`: serves a foreign package only to programs that use it. The original may be installed beside it;
- a `CompatFormat`: makes a Python program of a file in another format;
- any other class with the attribute `package`: the plugin installs the foreign package itself, as `heronpy` is, so it
  has nothing to do when a program is loaded.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import ClassVar

__all__ = ["CompatFormat", "CompatPackage"]


class CompatPackage(ABC):
    """A foreign package for one process. Its class is the entry point of the plugin in the group ``heron.compat``."""

    package: ClassVar[str]
    """The import name of the package."""

    @staticmethod
    @abstractmethod
    def is_used_by(path: Path, imported: AbstractSet[str]) -> bool:
        """Return whether the program at `path` needs the package.

        Called before the file is loaded, if it imports a package that belongs to neither Python nor Heron.

        Args:
            path: the file.
            imported: the first parts of the modules that the file imports, also through modules beside it.
        """

    @staticmethod
    @abstractmethod
    def serve() -> None:
        """Make the package importable in this process. Further calls have no effect.

        The process that loads the author's file calls it before the file is loaded, and each instance does.

        Raises:
            HeronError: when another package of that name is imported already.
        """

    @staticmethod
    @abstractmethod
    def project_folders(path: Path) -> tuple[Path, ...]:
        """Return the folders that the program at `path` imports from besides its own, in the order of `sys.path`.

        All their files travel with the topology. Called only in the process that loads the author's file.
        """


class CompatFormat(ABC):
    """A format of programs. Its class is the entry point of the plugin in the group ``heron.compat``."""

    package: ClassVar[str]
    """The name of the system that such programs were written for."""

    suffix: ClassVar[str]
    """The end of the names of such files, with its dot and in lower case."""

    @staticmethod
    @abstractmethod
    def write_program(path: Path, name: str | None, arguments: Sequence[str], folder: Path) -> Path:
        """Write a Python program that submits the topology of the file at `path`; return its file.

        Called only in the process that loads the author's file. It may block, and the user may end it.

        Args:
            path: the file of the user, as an absolute path.
            name: the topology that the user has chosen, as in ``FILE:NAME``, or None.
            arguments: those of the user for the file, behind ``-c``, ``KEY=VALUE`` for each option ``-c``.
            folder: an empty folder. All files that it has afterwards travel with the topology. The command removes it.

        Raises:
            HeronError: when the file has no topology that can run.
        """
