"""What random pipelines are made of: input, sources and steps."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from heron_streamlet import (
    Builder,
    Items,
    Source,
    StageContext,
    Streamlet,
    count_window,
    session_window,
    sliding_window,
    tumbling_window,
)
from heron_streamlet.connectors.sources import Reader

__all__ = ["CHAINS", "KEYS", "RECORDS", "STATEFUL", "STATELESS", "WINDOWED", "Partitions", "chained", "timed_source"]

KEYS = [None, True, 0, 2.5, "", "ключ", "b", ("a", 1)]
RECORDS = st.lists(st.tuples(st.integers(-30, 60), st.sampled_from(KEYS), st.integers(-3, 3)), max_size=25)
"""Time in seconds, key and value: late, equal, out of order, skewed, or none at all."""

Step = Callable[[Streamlet[Any]], Streamlet[Any]]


class Partitions(Source[Any]):
    """Several lists, each of which is a partition.

    Args:
        lists: the elements.
        most: the number of elements that a read gives, at most.
        breaks: whether there is nothing to read between two reads, so that a watermark follows each one.
        gate: a file; the second halves are read when it exists. None does not wait.
    """

    def __init__(
        self, lists: list[list[Any]], most: int = 1000, *, breaks: bool = False, gate: Path | None = None
    ) -> None:
        self.lists = lists
        self.most = most
        self.breaks = breaks
        self.gate = gate

    def partitions(self, tasks: int) -> list[str]:
        """`Source.partitions`."""
        return [str(number) for number in range(len(self.lists))]

    def open(self, partition: str, position: object, context: StageContext) -> Reader[Any]:
        """`Source.open`."""
        return _Halting(Items(self.lists[int(partition)]).open("0", position, context), self, int(partition))


class _Halting:
    def __init__(self, reader: Reader[Any], source: Partitions, partition: int) -> None:
        self._reader = reader
        self._source = source
        self._half = len(source.lists[partition]) // 2
        self._pause = False

    @property
    def position(self) -> object:
        return self._reader.position

    def read(self, limit: int) -> Sequence[Any] | None:
        position, gate = self._reader.position, self._source.gate
        assert isinstance(position, int)
        most = min(limit, self._source.most)
        if gate is not None and not gate.exists():
            most = min(most, self._half - position)
        self._pause = self._source.breaks and not self._pause
        return [] if self._pause or most <= 0 else self._reader.read(most)

    def close(self) -> None:
        self._reader.close()


def pairs(stream: Streamlet[Any]) -> Streamlet[Any]:
    """Pairs of a key and a number, whatever the elements are."""
    return stream.map(lambda each: (str(each[0]), number_of(each[1])))


def number_of(value: object) -> int:
    """A whole number for any value."""
    return value if isinstance(value, int) else len(str(value))


STATELESS: dict[str, Step] = {
    "map": lambda stream: stream.map(lambda each: (each[0], each[1])),
    "filter": lambda stream: stream.filter(lambda each: number_of(each[1]) % 3 != 1),
    "flat_map": lambda stream: stream.flat_map(lambda each: [each] * (number_of(each[1]) % 3)),
    "key_by": lambda stream: stream.key_by(lambda each: number_of(each[1]), lambda each: each[1]),
    "clone": lambda stream: operator.methodcaller("union", stream.clone(2)[1])(stream.clone(1)[0]),
    "split": lambda stream: stream.split({"few": lambda each: number_of(each[1]) < 2})["few"],
}
STATEFUL: dict[str, Step] = {
    "distinct": lambda stream: pairs(stream).distinct(),
    "count_by_key": lambda stream: pairs(stream).count_by_key(),
    "map_with_state": lambda stream: pairs(stream).map_with_state(lambda: 0, lambda n, _: (n + 1, n)),
    "count window": lambda stream: (
        pairs(stream).map(lambda p: (p[0], 1)).reduce_by_key_and_window(count_window(3, 2), operator.add)
    ),
    "tumbling": lambda stream: pairs(stream).reduce_by_key_and_window(tumbling_window(10), operator.add),
    "sliding": lambda stream: pairs(stream).count_by_key_and_window(sliding_window(10, 4).allow_lateness(3)),
    "sparse": lambda stream: pairs(stream).count_by_key_and_window(sliding_window(3, 7)),
    "session": lambda stream: pairs(stream).reduce_by_key_and_window(session_window(5), operator.add),
    "whole": lambda stream: pairs(stream).map(lambda p: p[1]).reduce_by_window(tumbling_window(10), max),
    "join": lambda stream: pairs(stream).outer_join(
        pairs(stream.filter(lambda each: number_of(each[1]) > 0)), tumbling_window(10), lambda one, other: (one, other)
    ),
}
STEPS = STATELESS | STATEFUL
WINDOWED = ["tumbling", "sliding", "sparse", "session", "join"]
"""Their results have the time of the window, and may be the input of other windows."""
RUNNING = {"distinct", "count_by_key", "map_with_state", "count window"}
"""Their results depend on the order in which elements of several tasks arrive, when a later step keeps state."""
CHAINS = st.lists(st.tuples(st.sampled_from(sorted(STEPS)), st.integers(1, 3)), max_size=5)
"""Up to five steps, each with a number of tasks."""


def timed_source(builder: Builder, inputs: list[list[Any]], lag: float, tasks: int, most: int = 1000) -> Streamlet[Any]:
    """Pairs of key and value, with event time; each list is a source partition, a read gives `most` elements of it."""
    source = builder.new_source(Partitions(inputs, most)).set_num_partitions(tasks)
    return source.event_time(lambda each: each[0], lag=lag).map(lambda each: each[1:])


def chained(stream: Streamlet[Any], steps: Sequence[tuple[str, int]]) -> Streamlet[Any]:
    """The stream behind these steps, without those whose results would depend on the order of arrival."""
    running = False
    for name, partitions in steps:
        if running and name in STATEFUL:
            continue
        running = running or name in RUNNING
        stream = STEPS[name](stream)
        if name not in STATELESS and name != "whole":
            stream.set_num_partitions(partitions)
    return stream
