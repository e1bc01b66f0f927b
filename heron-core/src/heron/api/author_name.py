"""Names that authors give: of topologies, components, streams and fields."""

from __future__ import annotations

from collections.abc import Iterable

from heron.errors import TopologyError

__all__ = ["checked_fields", "checked_name", "is_a"]


def is_a(value: object, *kinds: type) -> bool:
    """isinstance for arguments whose annotation the author may not have kept to: does not narrow types."""
    return isinstance(value, kinds)


def checked_name(name: object, place: str) -> str:
    """The name, a string with at least one character.

    Raises:
        TopologyError: when it is not.
    """
    if not isinstance(name, str) or not name:
        msg = f"{place}: the name {name!r} is not a string with at least one character; give one"
        raise TopologyError(msg)
    return name


def checked_fields(fields: Iterable[object], place: str) -> tuple[str, ...]:
    """The fields as a tuple of strings.

    Raises:
        TopologyError: when one is no string, is empty, or is named twice.
    """
    names: list[str] = []
    for field in fields:
        name = checked_name(field, f"{place}, field")
        if name in names:
            msg = f"{place}: the field {name!r} is named twice; name each field once"
            raise TopologyError(msg)
        names.append(name)
    return tuple(names)
