"""A topology of a Python spout, a bolt in a child, and a bolt that keeps what it gets."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Unpack

from heron.api import Bolt, Spout, TopologyBuilder, TopologyContext, Tuple
from heron_runtime_multilang import ChildArguments, ShellBolt
from heron_simulator import Simulation

__all__ = ["NUMBERS", "Keep", "Numbers", "doubling", "kept", "source"]

NUMBERS = 60
CHILDREN = Path(__file__).parent


class Numbers(Spout):
    """Emits each number until it is acked."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Prepare the numbers."""
        self.waiting = deque(range(NUMBERS))
        self.acked: set[object] = set()
        self.failed: Counter[object] = Counter()

    def next_tuple(self) -> None:
        """Emit a number."""
        if self.waiting:
            number = self.waiting.popleft()
            self.emit([number], tup_id=number)
        else:
            self.end()

    def ack(self, tup_id: object) -> None:
        """The number is done."""
        self.acked.add(tup_id)

    def fail(self, tup_id: object) -> None:
        """Emit the number again."""
        assert isinstance(tup_id, int)
        self.failed[tup_id] += 1
        self.waiting.append(tup_id)


class Keep(Bolt):
    """Keeps what it gets."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Prepare the list."""
        self.rows: list[tuple[object, ...]] = []

    def process(self, tup: Tuple) -> None:
        """Keep a tuple."""
        self.rows.append(tup.values)
        self.ack(tup)


def kept(simulation: Simulation) -> Keep:
    """Return the last bolt."""
    found = simulation.component("keep")
    assert isinstance(found, Keep)
    return found


def source(simulation: Simulation) -> Numbers:
    """Return the spout."""
    found = simulation.component("numbers")
    assert isinstance(found, Numbers)
    return found


def doubling(mode: str, config: Mapping[str, object] | None = None, **child: Unpack[ChildArguments]) -> TopologyBuilder:
    """Return the topology."""
    builder = TopologyBuilder("doubling")
    builder.set_config({"topology.reliability.mode": mode, **(config or {})})
    numbers = builder.add_spout("numbers", Numbers, par=1)
    double = ShellBolt.spec("double", [numbers], optional_outputs=["number", "double"], **child)
    builder.add_spec(double)
    builder.add_bolt("keep", Keep, par=1, inputs=[double])
    return builder
