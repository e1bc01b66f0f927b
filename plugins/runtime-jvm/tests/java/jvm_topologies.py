"""The topologies of the tests: a word count in Java, and one Java bolt between a Python spout and a Python bolt."""

from __future__ import annotations

import pickle
from collections import Counter, deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple
from heron_runtime_jvm import (
    JvmArguments,
    JvmBolt,
    JvmSpout,
    compiled_classes,
    expanded_class_path,
    find_java,
)
from heron_simulator import Simulation

__all__ = [
    "SOURCES",
    "FailOnce",
    "Keep",
    "Numbers",
    "class_path",
    "kept",
    "one_bolt",
    "rows_of",
    "source",
    "word_count",
]

SOURCES = Path(__file__).parent


class Numbers(Spout):
    """Emits the values of the configuration, each with its number, until it is acked."""

    outputs = ("number", "value")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Prepare the rows."""
        self.values: list[object] = pickle.loads(bytes.fromhex(config["pickled"]))
        self.waiting = deque(range(len(self.values)))
        self.acked: set[object] = set()
        self.failed: Counter[object] = Counter()

    def next_tuple(self) -> None:
        """Emit a row."""
        if self.waiting:
            number = self.waiting.popleft()
            self.emit([number, self.values[number]], tup_id=number)
        else:
            self.end()

    def ack(self, tup_id: object) -> None:
        """The row is done."""
        self.acked.add(tup_id)

    def fail(self, tup_id: object) -> None:
        """Emit the row twice more."""
        assert isinstance(tup_id, int)
        self.failed[tup_id] += 1
        if self.failed[tup_id] < 3:
            self.waiting.append(tup_id)


class FailOnce(Bolt):
    """Fails the line 7 once, and sends the others on."""

    outputs = ("line", "number")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begin."""
        self.has_failed = False

    def process(self, tup: Tuple) -> None:
        """Send a line on."""
        if tup.values[1] == 7 and not self.has_failed:
            self.has_failed = True
            self.fail(tup)
        else:
            self.emit(tup.values, anchors=[tup])
            self.ack(tup)


class Keep(Bolt):
    """Keeps what it gets."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Prepare the list."""
        self.rows: list[tuple[object, ...]] = []

    def process(self, tup: Tuple) -> None:
        """Keep a tuple."""
        self.rows.append(tup.values)
        self.ack(tup)


def rows_of(values: list[object]) -> dict[str, object]:
    """Return the configuration of `Numbers` with these values, which JSON cannot carry."""
    return {"pickled": pickle.dumps(values).hex()}


def kept(simulation: Simulation) -> list[tuple[object, ...]]:
    """Return what has arrived at the end."""
    found = simulation.component("keep")
    assert isinstance(found, Keep)
    return found.rows


def source(simulation: Simulation) -> Numbers:
    """Return the spout."""
    found = simulation.component("numbers")
    assert isinstance(found, Numbers)
    return found


def class_path(jars: Path, *names: str) -> list[str]:
    """Return a class path: the classes of these sources, and Storm's jars."""
    path = expanded_class_path([f"{jars}/*"], SOURCES)
    return [str(compiled_classes("tests", [SOURCES / name for name in names], path, find_java())), f"{jars}/*"]


def word_count(path: list[str], lines: int, mode: str) -> TopologyBuilder:
    """Return a topology whose spout and bolts are in Java, except for the last one."""
    builder = TopologyBuilder("words")
    builder.set_config({"topology.reliability.mode": mode})
    given = JvmSpout.spec(
        "lines", java_class="demo.Words$Lines", arguments=[lines], class_path=path, outputs=["line", "number"]
    )
    split = JvmBolt.spec("split", [given], java_class="demo.Words$Split", class_path=path, outputs=["word", "number"])
    count = JvmBolt.spec(
        "count",
        {split: Grouping.fields("word")},
        2,
        java_class="demo.Words$Count",
        class_path=path,
        outputs=["word", "count"],
    )
    builder.add_spec(given, split, count)
    builder.add_bolt("keep", Keep, par=1, inputs=[count])
    return builder


def one_bolt(
    mode: str, values: list[object], config: Mapping[str, object] | None = None, **arguments: Unpack[JvmArguments]
) -> TopologyBuilder:
    """Return a topology with a bolt in Java that gets the rows (number, value)."""
    builder = TopologyBuilder("one")
    builder.set_config({"topology.reliability.mode": mode})
    numbers = builder.add_spout("numbers", Numbers, par=1, config=rows_of(values))
    bolt = JvmBolt.spec("bolt", [numbers], config=config, **arguments)
    builder.add_spec(bolt)
    builder.add_bolt("keep", Keep, par=1, inputs=[bolt])
    return builder
