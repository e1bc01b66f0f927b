"""The engine that a bench runs: its settings, and its environment if that is not this one."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

__all__ = ["Engine"]


@dataclass(frozen=True, slots=True)
class Engine:
    """`settings` have the form of ``heron run --set``; `paths` and `variables` go into the processes' environment.

    `python` is the interpreter that has the engine installed.
    """

    settings: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    python: str = sys.executable

    def of_tree(self, root: Path) -> Engine:
        """Return a copy that uses the environment that ``./dev`` has made in a working tree."""
        return replace(self, python=str(root / ".venv" / "bin" / "python"))

    @property
    def command(self) -> str:
        """The path of ``heron``."""
        return str(Path(self.python).with_name("heron"))

    def with_path(self, folder: Path, **variables: str) -> Engine:
        """Return a copy with one more import folder and more variables."""
        return replace(self, paths=(str(folder), *self.paths), variables=(*self.variables, *variables.items()))

    def options(self) -> list[str]:
        """Return the settings as options of the command."""
        return [part for each in self.settings for part in ("--set", each)]

    def environment(self, home: Path) -> dict[str, str]:
        """Return the environment of the processes; stored bytecode saves each process from compiling its imports."""
        inherited = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment = {**inherited, **dict(self.variables), "HOME": str(home)}
        if self.paths:
            environment["PYTHONPATH"] = _joined(self.paths, inherited.get("PYTHONPATH", ""))
        return environment


def _joined(paths: Sequence[str], inherited: str) -> str:
    return os.pathsep.join([*paths, inherited] if inherited else paths)
