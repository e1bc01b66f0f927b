"""Tuples as bolts receive them.

Tuples of one source share a generated class that holds the source, so making a tuple sets only three slots.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from heron.api.definition import DEFAULT_STREAM

__all__ = ["Tuple", "TupleHelper", "WeightedTuple", "weighted"]


class Tuple:
    """A received tuple.

    A tuple is equal only to itself, so it can be a key of a dict while it waits for its ack. It unpacks and indexes in
    the order ``id, component, stream, task, values``, as in heronpy.

    Attributes:
        id: for the engine, and as a rule None. The object itself is the identity of a tuple.
        component: the name of the emitting component.
        stream: the name of the stream.
        task: the id of the emitting task.
        values: the emitted values, in the order of the declared fields of the stream.
        weight: how many tuples of the source this one stands for: 1.0, unless the source sheds tuples. A count adds
            weights, a sum adds ``weight * value``; see ``topology.shed``.
    """

    __slots__ = ("_index", "id", "values")

    weight: float = 1.0

    _shown: ClassVar[tuple[str, ...]] = ("component", "stream", "task")
    """What error messages show of a tuple (`heron.author_text`): its values are data."""
    component: ClassVar[str] = ""
    stream: ClassVar[str] = DEFAULT_STREAM
    task: ClassVar[int] = -1

    def __init__(self, id: object = None, values: tuple[Any, ...] = (), index: int = -1) -> None:  # noqa: A002  # heronpy's name
        self.id = id
        self.values = values
        self._index = index

    @classmethod
    def source(cls, component: str, stream: str, task: int) -> type[Tuple]:
        """Return a new class for the tuples of one source. Each call makes another class, so callers keep it.

        Tests construct a tuple with ``Tuple.source("word", "default", 1)(values=("a",))``.
        """
        namespace = {
            "__slots__": (),
            "__module__": __name__,
            "component": component,
            "stream": stream,
            "task": task,
        }
        return type("Tuple", (cls,), namespace)

    def _fields(self) -> tuple[object, str, str, int, tuple[Any, ...]]:
        return (self.id, self.component, self.stream, self.task, self.values)

    def __iter__(self) -> Iterator[object]:
        return iter(self._fields())

    def __getitem__(self, position: int) -> object:
        return self._fields()[position]

    def __len__(self) -> int:
        return 5

    def __repr__(self) -> str:
        return (
            f"Tuple(id={self.id!r}, component={self.component!r}, stream={self.stream!r}, task={self.task!r}, "
            f"values={self.values!r})"
        )

    def __reduce__(self) -> tuple[object, ...]:
        # A generated class has no importable name, so a copy in another process makes its own class.
        weight = (self.weight,) if self.weight != 1.0 else ()
        return _restored, (self.component, self.stream, self.task, self.id, self.values, *weight)


class WeightedTuple(Tuple):
    """A tuple with a weight of its own."""

    __slots__ = ("weight",)

    weight: float


def weighted(tuple_class: type[Tuple]) -> type[WeightedTuple]:
    """Return a class for the tuples of the same source, each of which has its own weight."""
    return type("Tuple", (tuple_class, WeightedTuple), {"__slots__": (), "__module__": __name__})


def _restored(  # a pickle of a tuple names the positions
    component: str, stream: str, task: int, id_: object, values: tuple[Any, ...], weight: float = 1.0
) -> Tuple:
    source = Tuple.source(component, stream, task)
    if weight == 1.0:
        return source(id_, values)
    tup = weighted(source)(id_, values)
    tup.weight = weight
    return tup


class TupleHelper:
    """The stream and component names of tick tuples."""

    TICK_TUPLE_ID = "__tick"
    TICK_SOURCE_COMPONENT = "__system"

    @staticmethod
    def make_tick_tuple() -> Tuple:
        """Return a tick tuple: stream and id `TICK_TUPLE_ID`, component `TICK_SOURCE_COMPONENT`, no values."""
        return _TICK_SOURCE(TupleHelper.TICK_TUPLE_ID)


_TICK_SOURCE = Tuple.source(TupleHelper.TICK_SOURCE_COMPONENT, TupleHelper.TICK_TUPLE_ID, -1)
