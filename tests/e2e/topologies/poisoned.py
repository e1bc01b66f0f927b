"""Two spouts, of rows and of columns, whose every hundredth number always raises two bolts downstream.

The dead letters of the rows go to a bolt, those of the columns to a file. Neither spout keeps what it has emitted.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from recording import arguments, write_result

from heron.api import Bolt, DeadLetter, Grouping, Spout, Stream, TopologyBuilder, TopologyContext, Tuple, api_constants

A_BLOCK = 50
options = arguments(numbers=2000, attempts=2, pause=0.0, wait=0)


class NumberSpout(Spout):
    """Emits the numbers; notes outcomes."""

    outputs = (Stream(["number", "text"], "default"),)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts at zero."""
        self.out, self.context = config["out"], context
        self.number = self.acked = 0
        self.failed: list[Any] = []

    def next_tuple(self) -> None:
        """Emits a number."""
        if self.number == options.numbers:
            self.end_if_wanted()
            return
        self.emit([self.number, str(self.number)], tup_id=self.number)
        self.number += 1
        self.pause()

    def end_if_wanted(self) -> None:
        """At once, or when the test says so."""
        if not options.wait or Path(self.out, "end").exists():
            self.end()

    def pause(self) -> None:
        """After each block, unless the test is in a hurry."""
        if options.pause and self.number % A_BLOCK == 0 and not Path(self.out, "hurry").exists():
            threading.Event().wait(options.pause)

    def ack(self, tup_id: Any) -> None:  # noqa: ANN401  # the id may have any type
        """Counts it."""
        self.acked += 1

    def fail(self, tup_id: Any) -> None:  # noqa: ANN401
        """Notes it."""
        self.failed.append(tup_id)

    def close(self) -> None:
        """Writes the outcomes."""
        write_result(self.out, self.context, [self.acked, sorted(self.failed)])


class ColumnSpout(NumberSpout):
    """Emits a block as columns, with an id for each row."""

    columns = True

    def next_tuple(self) -> None:
        """Emits a block."""
        if self.number == options.numbers:
            self.end_if_wanted()
            return
        numbers = list(range(self.number, self.number + A_BLOCK))
        self.emit_columns({"number": pa.array(numbers), "text": pa.array(map(str, numbers))}, ids=numbers)
        self.number += A_BLOCK
        self.pause()


class PassBolt(Bolt):
    """Passes everything on, anchored."""

    outputs = ("number", "text")

    def process(self, tup: Tuple) -> None:
        """Emits it, and acks it."""
        self.emit(list(tup.values), anchors=[tup])
        self.ack(tup)


class CheckBolt(Bolt):
    """Raises for every hundredth number, and fails the seventh of each thousand once."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Nothing was seen."""
        self.out, self.context = config["out"], context
        self.times: dict[int, int] = {}

    def process(self, tup: Tuple) -> None:
        """Checks a number."""
        number, text = tup.values
        self.times[number] = self.times.get(number, 0) + 1
        if number % 100 == 0 and not Path(self.out, "mended").exists():
            message = f"poison {text}"
            raise ValueError(message)
        if number % 1000 == 7 and self.fails_first(number):
            self.fail(tup)
            return
        self.ack(tup)

    def fails_first(self, number: int) -> bool:
        """Once, also if this process replaces one that has failed it: a file remembers."""
        try:
            Path(self.out, f"failed-{self.context.get_component_id()}-{number}").touch(exist_ok=False)
        except FileExistsError:
            return False
        return True

    def finish(self) -> None:
        """Writes how often each number came."""
        write_result(self.out, self.context, sorted(self.times.items()))


class LetterBolt(Bolt):
    """Notes dead letters."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts with none."""
        self.out, self.context = config["out"], context
        self.letters: list[Any] = []

    def process(self, tup: Tuple) -> None:
        """Notes one."""
        letter = DeadLetter.of(tup)
        self.letters.append([letter.values, letter.tup_id, letter.failures, letter.component, letter.error])
        self.ack(tup)

    def finish(self) -> None:
        """Writes them."""
        write_result(self.out, self.context, self.letters)


builder = TopologyBuilder("poisoned")
builder.set_config(
    {
        api_constants.TOPOLOGY_RELIABILITY_MODE: "ATLEAST_ONCE",
        api_constants.TOPOLOGY_STMGRS: 2,
        api_constants.TOPOLOGY_REPLAY_ATTEMPTS: options.attempts,
        api_constants.TOPOLOGY_REPLAY_BACKOFF_SECS: 0.05,
        "out": options.out,
    }
)
rows = builder.add_spout("rows", NumberSpout, par=1)
blocks = builder.add_spout("blocks", ColumnSpout, par=1)
for source in (rows, blocks):
    passed = builder.add_bolt(f"pass_{source.name}", PassBolt, par=1, inputs={source: Grouping.SHUFFLE})
    builder.add_bolt(f"check_{source.name}", CheckBolt, par=2, inputs={passed: Grouping.fields("number")})
builder.add_bolt("letters", LetterBolt, par=1, inputs=[rows["dead_letters"]])

if __name__ == "__main__":
    builder.build_and_submit()
