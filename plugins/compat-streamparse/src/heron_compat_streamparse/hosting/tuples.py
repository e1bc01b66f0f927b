"""Tuples as bolts receive them: named tuples whose values are named tuples too."""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

__all__ = ["Tuple", "tuple_maker"]

_NO_IDENTIFIER = re.compile(r"\W|^(?=\d)")


class Tuple(NamedTuple):
    """A received tuple.

    Attributes:
        id: the id for `ack`, `fail` and `anchors`; unique in its task.
        component: the name of the emitting component.
        stream: the name of the stream.
        task: the id of the emitting task.
        values: the values, a named tuple with the fields of the stream.
    """

    id: str
    component: str
    stream: str
    task: int
    values: Any


def tuple_maker(
    component: str, stream: str, task: int, fields: Sequence[str] | None
) -> Callable[[str, tuple[object, ...]], Tuple]:
    """Return the function that makes the tuples of one source from id and values.

    Without `fields`, or where they are not names in Python, the values are a plain tuple.
    """
    named = _values_type(component, stream, fields)
    new = tuple.__new__
    if named is None:

        def make(tup_id: str, values: tuple[object, ...]) -> Tuple:
            return new(Tuple, (tup_id, component, stream, task, values))
    else:

        def make(tup_id: str, values: tuple[object, ...]) -> Tuple:
            return new(Tuple, (tup_id, component, stream, task, new(named, values)))

    return make


def _values_type(component: str, stream: str, fields: Sequence[str] | None) -> type[tuple[object, ...]] | None:
    name = "".join(_NO_IDENTIFIER.sub("_", each.title()) for each in (component, stream))
    try:
        return namedtuple(f"{name}Tuple", list(fields)) if fields is not None else None  # fields are known at run time
    except ValueError:  # a field is not a name in Python
        return None
