"""The entry point of this distribution. Searches for plugins load it, so it imports little."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar, cast

from heron.driver_kit.loading import load_object
from heron.spi.compat import CompatFormat

__all__ = ["StormJar"]

_WriteProgram = Callable[[Path, str | None, Sequence[str], Path], Path]


class StormJar(CompatFormat):
    """Topologies of Apache Storm 2.x, in a jar."""

    package: ClassVar[str] = "storm"
    suffix: ClassVar[str] = ".jar"

    @staticmethod
    def write_program(path: Path, name: str | None, arguments: Sequence[str], folder: Path) -> Path:
        """`CompatFormat.write_program`; see `heron_compat_storm.jar_program`."""
        write = cast("_WriteProgram", load_object("heron_compat_storm.jar_program:write_program"))
        return write(path, name, arguments, folder)
