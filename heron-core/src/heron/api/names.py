"""Names in a topology: of components, streams and fields, and of classes as ``module:Class`` entries."""

from __future__ import annotations

import re
from collections.abc import Iterable

from heron.author_text import short_text
from heron.errors import TopologyError

__all__ = ["OWN_MODULE", "checked_fields", "checked_name", "entry_of", "is_a", "is_text", "parsed_entry"]

OWN_MODULE = "__main__"
"""The module of an entry that means the author's own file; the loader puts the file's module name in its place."""

# Test tools load modules by path, and such a module may have a hyphen in its name.
_SURROGATE = re.compile("[\ud800-\udfff]")
_ENTRY = re.compile(r"[\w-]+(\.[\w-]+)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


def is_a(value: object, *kinds: type) -> bool:
    """Whether an argument, which may break its annotation, is one of these by its own class, and not by `__class__`.

    Type checkers do not narrow the type.
    """
    return issubclass(type(value), kinds)


def checked_name(name: object, place: str) -> str:
    """Return `name` unchanged.

    Raises:
        TopologyError: when `name` is not a string, is empty, or has a lone surrogate, which is not Unicode text.
    """
    if not isinstance(name, str) or not is_text(name):
        msg = f"{place}: the name {short_text(name)} is not a string with at least one character; give one"
        raise TopologyError(msg)
    return name


def is_text(value: object) -> bool:
    """Whether a value is a string of at least one character that is Unicode text: without lone surrogates."""
    return is_a(value, str) and bool(value) and _SURROGATE.search(str(value)) is None


def checked_fields(fields: Iterable[object], place: str) -> tuple[str, ...]:
    """Return the field names as a tuple, in their order.

    Raises:
        TopologyError: when a name is not a string, is empty, or occurs twice.
    """
    names: list[str] = []
    for field in fields:
        name = checked_name(field, f"{place}, field")
        if name in names:
            msg = f"{place}: the field {short_text(name)} is named twice; name each field once"
            raise TopologyError(msg)
        names.append(name)
    return tuple(names)


def entry_of(cls: type, place: str) -> str:
    """Return ``module:Class`` for a class.

    Raises:
        TopologyError: when the class is defined inside a function, where no other process can import it.
    """
    if "<locals>" in cls.__qualname__:
        msg = (
            f"{place}: the class {cls.__qualname__!r} of {cls.__module__} is defined inside a function, so instances "
            "cannot import it; move it to the top level of the module"
        )
        raise TopologyError(msg)
    return f"{cls.__module__}:{cls.__qualname__}"


def parsed_entry(name: object, place: str) -> str:
    """Return ``module:Class`` for ``module.Class``, ``module:Class``, or a class of the author's own file, ``Class``.

    Raises:
        TopologyError: when `name` has none of these forms.
    """
    text = name if isinstance(name, str) else ""
    module, colon, cls = text.rpartition(":" if ":" in text else ".")
    entry = f"{module}:{cls}" if colon else f"{OWN_MODULE}:{cls}"
    if not _ENTRY.fullmatch(entry):
        msg = f"{place}: {short_text(name)} does not name a class; give 'module:Class'"
        raise TopologyError(msg)
    return entry
