"""The operators of a pipeline, as plain values: what a node of the graph does, not how an engine does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from heron.author_text import class_name, short_text
from heron_streamlet.connectors.sinks import Sink
from heron_streamlet.connectors.sources import Source
from heron_streamlet.connectors.transformer import Transformer
from heron_streamlet.failures import OperatorError, Step, failed_at
from heron_streamlet.windowing.event_time import START_OF_TIME_US, EventClock
from heron_streamlet.windowing.keyed_operators import KeyedOperator
from heron_streamlet.windowing.window import SessionWindow, SlidingWindow

__all__ = [
    "AssignEventTime",
    "ColumnStep",
    "Consume",
    "Early",
    "FilterBy",
    "FlatMap",
    "Gather",
    "KeyBy",
    "Keyed",
    "Log",
    "Map",
    "OfKind",
    "Operator",
    "Pass",
    "Read",
    "Repartition",
    "Transform",
    "Union",
    "Windowed",
    "Write",
    "chosen_partition",
    "idle_after_s",
]


@dataclass(frozen=True, slots=True)
class Operator:
    """What a node does. `word` begins the default name of the node, as in Heron."""

    word: ClassVar[str] = "operator"


class OfKind(Operator):
    """An operator whose default name depends on the method that added it."""

    __slots__ = ()
    kind: str

    @property
    def word(self) -> str:  # type: ignore[override]  # by kind
        """`Operator.word`."""
        return self.kind


@dataclass(frozen=True, slots=True)
class Read(Operator):
    """Reads a source."""

    source: Source[Any]
    word: ClassVar[str] = "source"


@dataclass(frozen=True, slots=True)
class Map(Operator):
    """One element for each."""

    function: Callable[[Any], Any]
    word: ClassVar[str] = "map"


@dataclass(frozen=True, slots=True)
class FlatMap(Operator):
    """Any number of elements for each."""

    function: Callable[[Any], Iterable[Any]]
    word: ClassVar[str] = "flatmap"


@dataclass(frozen=True, slots=True)
class FilterBy(Operator):
    """The elements for which the function is true."""

    function: Callable[[Any], Any]
    word: ClassVar[str] = "filter"


@dataclass(frozen=True, slots=True)
class Pass(Operator):
    """Every element: a clone."""

    word: ClassVar[str] = "clone"


@dataclass(frozen=True, slots=True)
class KeyBy(Operator):
    """Pairs of a key and a value for each element; None for the element itself as the value."""

    key: Callable[[Any], Any]
    value: Callable[[Any], Any] | None
    word: ClassVar[str] = "keyby"


@dataclass(frozen=True, slots=True)
class Transform(Operator):
    """An author's object with state of its task."""

    transformer: Transformer[Any, Any]
    word: ClassVar[str] = "transform"


@dataclass(frozen=True, slots=True)
class AssignEventTime(Operator):
    """Event time and bound for each element; see `heron_streamlet.windowing.event_time`."""

    function: Callable[[Any], object]
    lag_us: int
    idle_after_us: int | None
    max_ahead_us: int | None
    columns: bool = False
    """Whether the function gives an array of times for the rows of a batch."""
    word: ClassVar[str] = "eventtime"

    def clock(self, latest_us: int | None, now_s: Callable[[], float]) -> EventClock:
        """The clock of a source partition; `latest_us` is its largest event time of an earlier run, if there was one.

        `now_s` gives the time in seconds since the epoch.
        """
        latest_us = START_OF_TIME_US if latest_us is None else latest_us
        return EventClock(self.lag_us, latest_us, self.max_ahead_us, now_s)


@dataclass(frozen=True, slots=True)
class ColumnStep(OfKind):
    """Any number of elements for a batch: `step(batch, times, bounds)` returns them, each with its times and bounds."""

    step: Callable[[Any, Any, Any], Iterable[tuple[Any, Any, Any]]]
    kind: str


@dataclass(frozen=True, slots=True)
class Gather(Operator):
    """Batches of `rows` elements. `schema` is an Arrow schema."""

    schema: Any
    rows: int
    word: ClassVar[str] = "tocolumns"


@dataclass(frozen=True, slots=True)
class Union(Operator):
    """The elements of all inputs."""

    word: ClassVar[str] = "union"


@dataclass(frozen=True, slots=True)
class Repartition(Operator):
    """Every element, in another number of tasks; the function gives the partition, or None shuffles."""

    function: Callable[[Any, int], int] | None
    word: ClassVar[str] = "repartition"


@dataclass(frozen=True, slots=True)
class Keyed(OfKind):
    """An operator with state for each key, on pairs of key and value."""

    operator: KeyedOperator
    kind: str


@dataclass(frozen=True, slots=True)
class Windowed(OfKind):
    """An operator on windows of time of each key; its inputs are pairs, or with `whole` any elements.

    With `columns` the inputs are batches, and these are the names of the columns of the key; with `whole` none.
    """

    operator: KeyedOperator
    window: SlidingWindow | SessionWindow
    kind: str
    whole: bool = False
    columns: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Early(Operator):
    """The results of a windowed operator so far, as `WindowResult`; the engine gives them every `every_us` of time."""

    every_us: int
    word: ClassVar[str] = "early"


@dataclass(frozen=True, slots=True)
class Consume(Operator):
    """Calls a function with each element."""

    function: Callable[[Any], object]
    word: ClassVar[str] = "consume"


@dataclass(frozen=True, slots=True)
class Log(Operator):
    """Prints each element."""

    word: ClassVar[str] = "log"


@dataclass(frozen=True, slots=True)
class Write(Operator):
    """Writes each element to a sink."""

    sink: Sink[Any]
    word: ClassVar[str] = "sink"


def chosen_partition(
    function: Callable[[Any, int], int], element: object, partitions: int, operator: Step | str
) -> int:
    """The partition that the function of `Repartition` gives an element.

    Raises:
        OperatorError: when it is not a partition, or the function fails. `operator` is as in `OperatorError.of`.
    """
    try:
        chosen = function(element, partitions)
    except Exception as error:
        raise failed_at(operator, error, element) from error
    if type(chosen) is not int or not 0 <= chosen < partitions:
        shown = short_text(chosen) if type(chosen) is int else f"of type {class_name(chosen)}"
        reason = f"the partition {shown} is not an integer from 0 to {partitions - 1}"
        raise OperatorError.of(operator, reason, (element,))
    return chosen


def idle_after_s(operators: Iterable[AssignEventTime]) -> float:
    """The longest time of the operators; infinite if one of them waits for ever."""
    times = [float("inf") if each.idle_after_us is None else each.idle_after_us / 1_000_000 for each in operators]
    return max(times, default=float("inf"))
