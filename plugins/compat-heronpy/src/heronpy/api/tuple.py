"""Tuples as bolts receive them.

The constructor takes the five fields of heronpy, for programs whose tests make tuples. The engine makes its tuples
without it; ``isinstance(tup, Tuple)`` is true for both.
"""

from __future__ import annotations

from collections.abc import Iterable

from heron.api import tuple as engine
from heron.api.tuple import TupleHelper

__all__ = ["Tuple", "TupleHelper"]


class _AnyTuple(type):
    """Makes `isinstance` true for the tuples of the engine."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, engine.Tuple)


class Tuple(engine.Tuple, metaclass=_AnyTuple):
    """A received tuple; it unpacks in the order of the constructor's parameters."""

    __slots__ = ()

    def __new__(  # type: ignore[misc]  # an instance by the metaclass
        cls,
        id: object,  # noqa: A002  # heronpy's name
        component: str,
        stream: str,
        task: int,
        values: Iterable[object],
    ) -> engine.Tuple:
        """Return a tuple of that source."""
        return engine.Tuple.source(component, stream, task)(id, tuple(values))
