"""The entry point of this distribution: which packages it serves, and to which program.

The modules of the served packages are in the folder ``served``, which is on `sys.path` only in a process that loads a
program for streamparse. The real packages may be installed too; such a process does not import them.
"""

from __future__ import annotations

import sys
from collections.abc import Set as AbstractSet
from pathlib import Path
from typing import ClassVar

from heron.errors import UsageError
from heron.spi.compat import CompatPackage
from heron_compat_streamparse.project.project import find_project

__all__ = ["ServedPackages"]

_NAMES = ("streamparse", "pystorm")
_SERVED = Path(__file__).parent / "served"
_CONFIG, _KEY = "config.json", b'"topology_specs"'
"""A file above a topology of streamparse, and a key in it."""


class ServedPackages(CompatPackage):
    """The packages `streamparse` and `pystorm`."""

    package: ClassVar[str] = "streamparse"

    @staticmethod
    def is_used_by(path: Path, imported: AbstractSet[str]) -> bool:
        """`CompatPackage.is_used_by`: by its imports, or in a project, where other files may import the packages."""
        return not imported.isdisjoint(_NAMES) or _is_in_project(path)

    @staticmethod
    def serve() -> None:
        """`CompatPackage.serve`.

        Raises:
            UsageError: when this process has imported the real package before.
        """
        for name in _NAMES:
            module = sys.modules.get(name)
            file = getattr(module, "__file__", None)
            if module is not None and (file is None or not Path(file).is_relative_to(_SERVED)):
                msg = f"{name} is already imported from {file}; load the topology before anything imports {name}"
                raise UsageError(msg)
        if str(_SERVED) not in sys.path:
            sys.path.insert(0, str(_SERVED))

    @staticmethod
    def project_folders(path: Path) -> tuple[Path, ...]:
        """`CompatPackage.project_folders`: ``src`` of the project."""
        project = find_project(path)
        return project.source_folders if project else ()


def _is_in_project(path: Path) -> bool:
    config = path.parent.parent / _CONFIG
    try:
        return config.is_file() and _KEY in config.read_bytes()
    except OSError:  # it may belong to anything
        return False
