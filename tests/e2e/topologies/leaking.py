"""A bolt that keeps everything, with the setting that lets people see its tuples."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants


class Visit:
    """An object of the author, whose text must not be asked for."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.password = "swordfish"  # what nobody may see

    def __repr__(self) -> str:
        raise AssertionError


class VisitSpout(Spout):
    """Emits some visits a second until the file ``stop`` is there."""

    outputs = ("page", "visit")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Has emitted nothing."""
        self.number, self.stop = 0, Path(config["out"]) / "stop"

    def next_tuple(self) -> None:
        """Emits a visit."""
        time.sleep(0.005)
        if not self.stop.exists():
            self.number += 1
            self.emit([f"page {self.number % 7}", Visit(self.number)])


class LeakingBolt(Bolt):
    """Forgets nothing."""

    outputs = ("page", "count")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Has seen nothing."""
        self.seen: list[str] = []
        self.image = bytearray(2 << 20)

    def process(self, tup: Tuple) -> None:
        """Keeps a text of 1,000 characters of each tuple."""
        page, visit = tup.values
        self.seen.append(f"{page} {visit.number}".ljust(1000))
        self.emit([page, len(self.seen)])


class SinkBolt(Bolt):
    """Says by the file ``flows`` that tuples arrive, and drops them."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Has no tuple yet."""
        self.flows = Path(config["out"]) / "flows"

    def process(self, tup: Tuple) -> None:
        """Drops a tuple."""
        if not self.flows.exists():
            self.flows.touch()


if __name__ == "__main__":
    options = arguments(stmgrs=1)
    builder = TopologyBuilder("leaking")
    builder.set_config({api_constants.TOPOLOGY_STMGRS: options.stmgrs, "out": options.out})
    visits = builder.add_spout("visits", VisitSpout, par=1)
    shows = {api_constants.TOPOLOGY_INSPECT_TUPLES: True}
    leak = builder.add_bolt("leak", LeakingBolt, par=1, inputs={visits: Grouping.SHUFFLE}, config=shows)
    builder.add_bolt("sink", SinkBolt, par=1, inputs={leak: Grouping.SHUFFLE})
    builder.build_and_submit()
