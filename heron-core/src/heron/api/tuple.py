"""What a bolt receives. Tuples of one source share a generated class, so that making one sets three slots
only.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar

from heron.api.definition import DEFAULT_STREAM

__all__ = ["Tuple", "TupleHelper"]


class Tuple:
    """One tuple as a bolt sees it.

    `component`, `stream` and `task` name where it was emitted: `task` is the id of the emitting task. They
    stand on a class generated per source (see `source`), the rest on the object. A tuple is equal only to
    itself, so that it can be a key while it waits for its ack. It unpacks and indexes in the order ``id,
    component, stream, task, values``, as in heronpy.

    Attributes:
        values: the emitted values, in the order of the stream's declared fields. Their types are whatever was
            emitted, hence ``Any``.
        id: the engine's name for this tuple, opaque.
    """

    __slots__ = ("_index", "id", "values")

    component: ClassVar[str] = ""
    stream: ClassVar[str] = DEFAULT_STREAM
    task: ClassVar[int] = -1

    def __init__(self, id: object = None, values: tuple[Any, ...] = (), index: int = -1) -> None:  # noqa: A002  # heronpy's name
        self.id = id
        self.values = values
        self._index = index

    @classmethod
    def source(cls, component: str, stream: str, task: int) -> type[Tuple]:
        """A new subclass for the tuples of one source; callers keep it, as each call makes another one.

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
        # A generated class cannot be found by name, so a copy in another process makes its own.
        return _restored, (self.component, self.stream, self.task, self.id, self.values)


def _restored(component: str, stream: str, task: int, id_: object, values: tuple[Any, ...]) -> Tuple:
    return Tuple.source(component, stream, task)(id_, values)


class TupleHelper:
    """Tick tuples: the names by which they are told apart, and how one is made."""

    TICK_TUPLE_ID = "__tick"
    TICK_SOURCE_COMPONENT = "__system"

    @staticmethod
    def make_tick_tuple() -> Tuple:
        """A tick tuple: stream and id are `TICK_TUPLE_ID`, the component is `TICK_SOURCE_COMPONENT`, no
        values.
        """
        return _TICK_SOURCE(TupleHelper.TICK_TUPLE_ID)


_TICK_SOURCE = Tuple.source(TupleHelper.TICK_SOURCE_COMPONENT, TupleHelper.TICK_TUPLE_ID, -1)
