"""What a bolt receives.

The engine makes its tuples without heronpy's constructor. A program that makes one itself, as its tests may, names the
five fields; ``isinstance`` takes both kinds for a `Tuple`.
"""

from __future__ import annotations

from collections.abc import Iterable

from heron.api import tuple as engine
from heron.api.tuple import TupleHelper

__all__ = ["Tuple", "TupleHelper"]


class _AnyTuple(type):
    """Takes the engine's tuples for instances too."""

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, engine.Tuple)


class Tuple(engine.Tuple, metaclass=_AnyTuple):
    """One tuple as a bolt sees it; unpacks in the order of its constructor's parameters."""

    __slots__ = ()

    def __new__(  # type: ignore[misc]  # an instance by the metaclass
        cls,
        id: object,  # noqa: A002  # heronpy's name
        component: str,
        stream: str,
        task: int,
        values: Iterable[object],
    ) -> engine.Tuple:
        """A tuple of that source."""
        return engine.Tuple.source(component, stream, task)(id, tuple(values))
