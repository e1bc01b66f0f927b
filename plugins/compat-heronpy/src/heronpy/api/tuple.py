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
    """Makes the engine's tuples, and takes all of them for instances."""

    def __call__(
        cls,
        id: object,  # noqa: A002  # heronpy's name
        component: str,
        stream: str,
        task: int,
        values: Iterable[object],
    ) -> engine.Tuple:
        return engine.Tuple.source(component, stream, task)(id, tuple(values))

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, engine.Tuple)


class Tuple(engine.Tuple, metaclass=_AnyTuple):
    """One tuple as a bolt sees it: ``Tuple(id, component, stream, task, values)``, which also unpacks in this order."""
