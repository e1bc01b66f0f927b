"""Tuples of 1 byte and of megabytes in turn: a topology whose spout names one task, or a pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments, write_result

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants
from heron_streamlet import Builder, Config, Items, Runner, TextFolder

TUPLES = 12
TOPOLOGY_BYTES = 10_000_000
PIPELINE_BYTES = 6_000_000


class UnevenSpout(Spout):
    """Emits everything before its first flush."""

    outputs = ("number", "text")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.numbers = iter(range(TUPLES))
        self.texts = ("x", "x" * TOPOLOGY_BYTES)  # made before the emits, which then are faster than the linger

    def next_tuple(self) -> None:
        """Emits everything in one call."""
        for number in self.numbers:
            self.emit([number, self.texts[number % 2]], tup_id=number)
        self.end()


class SizesBolt(Bolt):
    """Records the size of each tuple."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with no record."""
        self.out, self.context = config["out"], context
        self.rows: list[list[int]] = []

    def process(self, tup: Tuple) -> None:
        """Records a tuple."""
        self.rows.append([tup.values[0], len(tup.values[1])])
        self.ack(tup)

    def finish(self) -> None:
        """Writes the records."""
        write_result(self.out, self.context, self.rows)


if __name__ == "__main__":
    options = arguments(mode="", delivery=0, containers=1)
    if options.mode:
        builder = TopologyBuilder("uneven_sizes")
        builder.set_config(
            {
                api_constants.TOPOLOGY_RELIABILITY_MODE: options.mode,
                api_constants.TOPOLOGY_STMGRS: options.containers,
                "out": options.out,
            }
        )
        spout = builder.add_spout("uneven", UnevenSpout, par=1)
        builder.add_bolt("sizes", SizesBolt, par=1, inputs={spout: Grouping.SHUFFLE})
        builder.build_and_submit()
    else:
        pipeline = Builder()
        elements = pipeline.new_source(Items(["x", "x" * PIPELINE_BYTES] * (TUPLES // 2))).repartition(2)
        elements.map(lambda text: str(len(text))).to_sink(TextFolder(Path(options.out) / "sizes"))
        config = Config().set_delivery_semantics(options.delivery).set_num_containers(options.containers)
        Runner().run("uneven_sizes", config, pipeline)
