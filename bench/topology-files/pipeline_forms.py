"""The same work as a pipeline and as a spout with a bolt: a chain of functions, or a count by key and window.

The form ``columns`` is the pipeline of the count over record batches.

The first element and the end are noted as files ``begin`` and ``end``, with the time and the number of results.
"""

from __future__ import annotations

import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple
from heron_streamlet import Builder, Items, TransactionalSink, tumbling_window
from heron_streamlet.topology.topology_compiler import compile_topology

KEYS = [f"key{number}" for number in range(5_000)]
PER_S = 10_000
"""Elements per second of event time."""
WINDOW_S = 10
_BATCH = 100  # as the source of a pipeline reads
_ROWS = 65_536  # as `ParquetFiles` reads


def note(folder: str, name: str, count: int) -> None:
    Path(folder, name).write_text(f"{time.monotonic()} {count}", encoding="utf-8")


def numbers(folder: str, elements: int) -> Iterator[int]:
    note(folder, "begin", elements)
    yield from range(elements)


def events(folder: str, elements: int) -> Iterator[tuple[float, str]]:
    note(folder, "begin", elements)
    keys = KEYS * (elements // len(KEYS) + 1)
    yield from zip((number / PER_S for number in range(elements)), keys, strict=False)


def batches(folder: str, elements: int) -> Iterator[pa.RecordBatch]:
    """The events as record batches."""
    note(folder, "begin", elements)
    keys = pa.array([KEYS[number % len(KEYS)] for number in range(_ROWS + len(KEYS))])
    for first in range(0, elements, _ROWS):
        rows = min(_ROWS, elements - first)
        times = pa.array(np.arange(first, first + rows) / PER_S)
        yield pa.RecordBatch.from_pydict({"time": times, "key": keys.slice(first % len(KEYS), rows)})


def triple(number: int) -> int:
    return 3 * number


def odd(number: int) -> bool:
    return number % 2 == 1


def text(number: int) -> str:
    return str(number)


class Ending(TransactionalSink[Any]):
    """Counts, and notes the end."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.count = 0

    def put(self, element: Any) -> None:  # noqa: ANN401  # any result
        self.count += 1

    def prepare(self, checkpoint: int) -> None:
        note(self.folder, "end", self.count)

    def commit(self, checkpoint: int) -> None:
        pass

    def restore(self, checkpoint: int) -> None:
        pass


class NumberSpout(Spout):
    """Emits the numbers."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.numbers = numbers(config["folder"], config["elements"])

    def next_tuple(self) -> None:
        batch = list(islice(self.numbers, _BATCH))
        for number in batch:
            self.emit((number,))
        if not batch:
            self.end()


class ChainBolt(Bolt):
    """Calls the functions of the chain, as a pipeline does, and emits."""

    outputs = ("text",)

    def process(self, tup: Tuple) -> None:
        number = triple(tup.values[0])
        if odd(number):
            self.emit((text(number),))


class EndBolt(Bolt):
    """Counts, and notes the end."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.folder, self.count = config["folder"], 0

    def process(self, tup: Tuple) -> None:
        self.count += 1

    def finish(self) -> None:
        note(self.folder, "end", self.count)


class EventSpout(Spout):
    """Emits events, and a watermark for each second of event time."""

    outputs = ("key", "time")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.events = events(config["folder"], config["elements"])
        self.next_s = 1.0

    def next_tuple(self) -> None:
        batch = list(islice(self.events, _BATCH))
        for time_s, key in batch:
            self.emit((key, time_s))
        if not batch:
            self.end()
        elif time_s >= self.next_s:
            self.next_s = time_s + 1.0
            self.emit_watermark(time_s)


class WindowBolt(Bolt):
    """Counts by key and window, and emits the windows that the watermark has passed."""

    outputs = ("key", "start", "count")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.windows: dict[float, dict[str, int]] = {}

    def process(self, tup: Tuple) -> None:
        key, time_s = tup.values
        start = time_s // WINDOW_S * WINDOW_S
        counts = self.windows.get(start)
        if counts is None:
            counts = self.windows[start] = {}
        counts[key] = counts.get(key, 0) + 1

    def process_watermark(self, time_s: float) -> None:
        for start in [each for each in self.windows if each + WINDOW_S <= time_s]:
            for key, count in self.windows.pop(start).items():
                self.emit((key, start, count))

    def finish(self) -> None:
        self.process_watermark(float("inf"))


def by_hand(chosen: Namespace) -> TopologyBuilder:
    builder = TopologyBuilder("by_hand")
    if chosen.work == "chain":
        source = builder.add_spout("source", NumberSpout, par=1)
        worked = builder.add_bolt("chain", ChainBolt, par=1, inputs={source: Grouping.SHUFFLE})
    else:
        source = builder.add_spout("source", EventSpout, par=1)
        worked = builder.add_bolt("windows", WindowBolt, par=1, inputs={source: Grouping.fields("key")})
    builder.add_bolt("end", EndBolt, par=1, inputs={worked: Grouping.SHUFFLE})
    builder.set_config(vars(chosen))
    return builder


def as_pipeline(chosen: Namespace) -> TopologyBuilder:
    builder, folder, elements = Builder(), chosen.folder, chosen.elements
    if chosen.work == "chain":
        stream = builder.new_source(Items(lambda: numbers(folder, elements))).repartition(1)
        results: Any = stream.map(triple).filter(odd).map(text)
    elif chosen.form == "columns":
        rows = builder.new_columns(Items(lambda: batches(folder, elements))).event_time("time")
        results = rows.count_by_key_and_window("key", tumbling_window(WINDOW_S))
    else:
        timed = builder.new_source(Items(lambda: events(folder, elements))).event_time(lambda event: event[0])
        results = timed.key_by(lambda event: event[1]).count_by_key_and_window(tumbling_window(WINDOW_S))
    results.repartition(1).to_sink(Ending(folder))
    return compile_topology("as_pipeline", builder.graph(), vars(chosen))


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    parser = ArgumentParser()
    parser.add_argument("--folder", required=True, help="folder of the notes")
    parser.add_argument("--elements", type=int, default=1_000_000)
    parser.add_argument("--work", choices=("chain", "windows"), default="chain")
    parser.add_argument("--form", choices=("hand", "pipeline", "columns"), default="pipeline")
    chosen = parser.parse_args(arguments)
    return by_hand(chosen) if chosen.form == "hand" else as_pipeline(chosen)


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
