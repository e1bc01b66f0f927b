"""Two spouts with different serializers, and a bolt that reads both."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from recording import RecordBolt, arguments

from heron.api import Grouping, Spout, TopologyBuilder, TopologyContext, Tuple


class ValueSpout(Spout):
    """Emits one row of each value; only pickle can encode the fifth."""

    outputs = ("number", "value")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts at the first value."""
        values = (None, (1, "two"), Decimal("1.10"), {"a": [1.5]}, Fraction(1, 3), b"bytes")
        self.rows = list(enumerate(values))

    def next_tuple(self) -> None:
        """Emits one."""
        if not self.rows:
            self.end()
            return
        number, value = self.rows.pop(0)
        self.emit([number, value], tup_id=number)


class ReprBolt(RecordBolt):
    """Stores the representation of values."""

    def process(self, tup: Tuple) -> None:
        """Stores a value."""
        self.rows.append([tup.component, tup.values[0], repr(tup.values[1])])
        self.ack(tup)


if __name__ == "__main__":
    options = arguments(neutral="msgpack", mode="ATMOST_ONCE")
    builder = TopologyBuilder("mixed")
    builder.set_config({"topology.reliability.mode": options.mode})
    inputs = {
        builder.add_spout("plain", ValueSpout, par=1): Grouping.ALL,
        builder.add_spout("neutral", ValueSpout, par=1, config={"topology.serializer": options.neutral}): Grouping.ALL,
    }
    builder.add_bolt("record", ReprBolt, par=1, inputs=inputs, config={"out": options.out})
    builder.build_and_submit()
