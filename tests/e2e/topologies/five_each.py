"""Two spouts and a bolt: one spout ends in its fourth call of five tuples, the other one when there is a file ``stop``.

Each call of the first spout's `next_tuple` is a line of the file ``calls``. The bolt acks everything and keeps it in
its state. With ``--form columns`` each call emits one batch.
"""

from __future__ import annotations

import select
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments, write_result

from heron.api import (
    Bolt,
    Grouping,
    Spout,
    State,
    StatefulComponent,
    TopologyBuilder,
    TopologyContext,
    Tuple,
    api_constants,
)


class FiveEach(Spout):
    """Emits five new numbers in each call, whatever happened before."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts at zero."""
        self.file = Path(config["out"], "calls")
        self.calls = self.number = 0

    def next_tuple(self) -> None:
        """Notes the call; ends in the middle of the fourth."""
        self.calls += 1
        with self.file.open("a", encoding="utf-8") as file:
            file.write("call\n")
        numbers = range(self.number, self.number + 5)
        self.number += 5
        if self.calls == 4:
            self.end()
        self.give(numbers)

    def give(self, numbers: range) -> None:
        """Emits rows."""
        for number in numbers:
            self.emit([number], tup_id=number)


class FiveInColumns(FiveEach):
    """The same as columns."""

    columns = True

    def give(self, numbers: range) -> None:
        """Emits a batch whose rows are roots."""
        self.emit_columns({"number": list(numbers)}, ids=numbers)


class Gate(Spout):
    """Emits nothing, and ends on request."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Takes the file."""
        self.stop = Path(config["out"], "stop")

    def next_tuple(self) -> None:
        """Looks for the file."""
        select.select([], [], [], 0.01)
        if self.stop.exists():
            self.end()


class Keep(Bolt, StatefulComponent):
    """Keeps all numbers."""

    def init_state(self, state: State) -> None:
        """Takes them."""
        self.state = state

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Goes on with the numbers of the checkpoint."""
        self.out, self.context = config["out"], context
        self.numbers: list[int] = self.state.get("numbers") or [] if hasattr(self, "state") else []

    def process(self, tup: Tuple) -> None:
        """Keeps one."""
        self.numbers.append(tup.values[0])
        self.ack(tup)

    def pre_save(self, checkpoint_id: str) -> None:
        """Saves them."""
        self.state.put("numbers", self.numbers)

    def finish(self) -> None:
        """Writes them."""
        write_result(self.out, self.context, self.numbers)


if __name__ == "__main__":
    options = arguments(mode="ATMOST_ONCE", form="rows", interval=0.0)
    builder = TopologyBuilder("five_each")
    builder.set_config(
        {
            api_constants.TOPOLOGY_RELIABILITY_MODE: options.mode,
            "out": options.out,
            **(
                {api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: options.interval}
                if options.interval
                else {}
            ),
        }
    )
    five = builder.add_spout("five", FiveInColumns if options.form == "columns" else FiveEach, par=1)
    gate = builder.add_spout("gate", Gate, par=1)
    builder.add_bolt("keep", Keep, par=1, inputs={five: Grouping.SHUFFLE, gate: Grouping.SHUFFLE})
    builder.build_and_submit()
