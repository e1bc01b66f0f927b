"""One bolt with several output streams: good orders go one way, refused orders another.

Run it:  heron run examples/multi_stream.py
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heron.api import Bolt, Grouping, Spout, Stream, TopologyBuilder, TopologyContext, Tuple

ORDERS = 20_000


def amount_of(order: int) -> int:
    """Return the amount of an order; some amounts are not positive, which is an error."""
    return order % 100 - 9


class OrderSpout(Spout):
    """Emits numbered orders."""

    outputs = ("order", "amount")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Start with the first order."""
        self.orders = iter(range(ORDERS))

    def next_tuple(self) -> None:
        """Emit the next order."""
        for order in self.orders:
            self.emit([order, amount_of(order)])
            return
        self.end()


class CheckBolt(Bolt):
    """Plain names in `outputs` are fields of the default stream; each further stream is a `Stream`."""

    outputs = ("order", "amount", Stream(fields=["order", "reason"], name="refused"))

    def process(self, tup: Tuple) -> None:
        """Emit a good order on the default stream, and a bad one with its error on the stream "refused"."""
        order, amount = tup.values
        if amount > 0:
            self.emit([order, amount])
        else:
            self.emit([order, f"the amount is {amount}"], stream="refused")


class BookBolt(Bolt):
    """Books good orders."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Start with empty books."""
        self.booked = 0

    def process(self, tup: Tuple) -> None:
        """Add an amount."""
        self.booked += tup.values[1]

    def finish(self) -> None:
        """Check the books."""
        verify("booked", self.booked, sum(max(amount_of(order), 0) for order in range(ORDERS)))


class ComplaintBolt(Bolt):
    """Stores the refused orders and counts the good ones. It distinguishes its two inputs by their stream."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Start with no order."""
        self.refused = 0
        self.good = 0

    def process(self, tup: Tuple) -> None:
        """Count an order."""
        if tup.stream == "refused":
            self.refused += 1
        else:
            self.good += 1

    def finish(self) -> None:
        """Check that each order went exactly one way."""
        verify("refused orders", self.refused, sum(amount_of(order) <= 0 for order in range(ORDERS)))
        verify("all orders", self.refused + self.good, ORDERS)


def verify(what: str, found: int, expected: int) -> None:
    """Raise an error if a result is wrong."""
    if found != expected:
        message = f"{what}: {found}, expected {expected}"
        raise ValueError(message)
    print(f"{what} verified: {found}", flush=True)


def multi_stream() -> TopologyBuilder:
    """The topology."""
    builder = TopologyBuilder("multi_stream")
    orders = builder.add_spout("orders", OrderSpout, par=1)
    check = builder.add_bolt("check", CheckBolt, par=2, inputs={orders: Grouping.SHUFFLE})
    builder.add_bolt("book", BookBolt, par=1, inputs={check: Grouping.SHUFFLE})
    # check["refused"] is the bolt's stream of that name; check alone is its default stream.
    both = {check["refused"]: Grouping.SHUFFLE, check["default"]: Grouping.SHUFFLE}
    builder.add_bolt("complaints", ComplaintBolt, par=1, inputs=both)
    return builder


if __name__ == "__main__":
    multi_stream().build_and_submit()
