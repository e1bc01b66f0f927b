"""How a class is named in a definition: ``module:Class``."""

from __future__ import annotations

import re

from heron.errors import TopologyError

__all__ = ["entry_of", "parsed_entry"]

# A module found by its path, as test tools do, may have a hyphen in its name.
_ENTRY = re.compile(r"[\w-]+(\.[\w-]+)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def entry_of(cls: type, place: str) -> str:
    """The entry of a class; one in the file that is run is ``__main__:Class``.

    Raises:
        TopologyError: when the class stands inside a function, where nobody else can import it.
    """
    if "<locals>" in cls.__qualname__:
        msg = (
            f"{place}: the class {cls.__qualname__!r} of {cls.__module__} stands inside a function and cannot be "
            "imported by its instances; move it to the top of the module"
        )
        raise TopologyError(msg)
    return f"{cls.__module__}:{cls.__qualname__}"


def parsed_entry(name: str, place: str) -> str:
    """The entry that ``module.Class`` or ``module:Class`` names.

    Raises:
        TopologyError: when it has neither form.
    """
    entry = name if ":" in name else ":".join(name.rsplit(".", 1))
    if not _ENTRY.fullmatch(entry):
        msg = f"{place}: {name!r} names no class; give 'module:Class'"
        raise TopologyError(msg)
    return entry
