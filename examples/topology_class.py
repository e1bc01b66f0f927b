"""A topology as a class whose attributes are its components. `heron run` finds the class.

Run it:  heron run examples/topology_class.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heron.api import Bolt, Grouping, Spout, Topology, TopologyContext, Tuple, api_constants

NUMBERS = 20_000


class NumberSpout(Spout):
    """Emits the numbers below a limit. Its tasks divide them among themselves."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Take this task's share; `limit` is in the configuration of the component, see below."""
        self.numbers = iter(range(context.get_task_index(), config["limit"], context.get_parallelism()))

    def next_tuple(self) -> None:
        """Emit the next number."""
        for number in self.numbers:
            self.emit([number])
            return
        self.end()


class SquareBolt(Bolt):
    """Squares numbers."""

    outputs = ("square", "last_digit")

    def process(self, tup: Tuple) -> None:
        """Emit the square and its last digit."""
        square = tup.values[0] ** 2
        self.emit([square, square % 10])


class SumBolt(Bolt):
    """Adds up the squares that end in the same digit."""

    outputs = ("sum",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Start from zero."""
        self.sum = 0

    def process(self, tup: Tuple) -> None:
        """Add a square."""
        self.sum += tup.values[0]

    def finish(self) -> None:
        """Emit this task's sum. The next bolt still receives it."""
        self.emit([self.sum])


class TotalBolt(Bolt):
    """Adds up the sums."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Start from zero."""
        self.total = 0

    def process(self, tup: Tuple) -> None:
        """Add a sum."""
        self.total += tup.values[0]

    def finish(self) -> None:
        """Check the total."""
        expected = sum(number**2 for number in range(NUMBERS))
        if self.total != expected:
            message = f"the total is {self.total}, expected {expected}"
            raise ValueError(message)
        print(f"total verified: {self.total}", flush=True)


class SumOfSquares(Topology):
    """The name of the class is the name of the topology; each attribute's name is the name of its component."""

    config = {api_constants.TOPOLOGY_STMGRS: 2}

    numbers = NumberSpout.spec(par=2, config={"limit": NUMBERS})
    squares = SquareBolt.spec(par=2, inputs={numbers: Grouping.LOCAL_OR_SHUFFLE})
    sums = SumBolt.spec(par=2, inputs={squares: Grouping.fields("last_digit")})
    total = TotalBolt.spec(inputs=[sums])  # a list means shuffle grouping
