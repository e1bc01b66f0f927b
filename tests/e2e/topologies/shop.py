"""Orders of a shop. One task of four that price them is slow; the stream goes on until there is a file ``stop``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants
from heron.api.metrics import CountMetric

TEXT = "x" * 1000  # a buffer is full within seconds


class Orders(Spout):
    """Emits some thousands of orders a second."""

    outputs = ("customer", "order", "text")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.stop = Path(config["out"], "stop")
        self.number = 0

    def next_tuple(self) -> None:
        """Emits ten orders, then waits a little."""
        if self.number % 100 == 0 and self.stop.exists():
            self.end()
            return
        for _ in range(10):
            self.emit([f"customer {self.number % 97}", self.number, TEXT])
            self.number += 1
        time.sleep(0.002)


class Price(Bolt):
    """Prices orders; its second task is slow."""

    outputs = ("customer", "price")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Knows whether it is the slow one."""
        self.stop = Path(config["out"], "stop")
        self.slow = context.get_task_index() == 1
        self.priced = CountMetric()
        context.register_metric("priced", self.priced, 1.0)
        print(f"<b>prices</b> orders, slow: {self.slow}")

    def process(self, tup: Tuple) -> None:
        """Prices one."""
        if self.slow and not self.stop.exists():
            self.ask_for_the_price()
        self.priced.incr()
        self.emit([tup.values[0], tup.values[1] % 100])

    def ask_for_the_price(self) -> None:
        """Stands for a service that answers slowly."""
        time.sleep(0.02)


class Total(Bolt):
    """Adds up."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins with nothing."""
        self.total = 0

    def process(self, tup: Tuple) -> None:
        """Adds one."""
        self.total += tup.values[1]


if __name__ == "__main__":
    options = arguments(name="shop")
    builder = TopologyBuilder(options.name)
    builder.set_config({api_constants.TOPOLOGY_STMGRS: 2, api_constants.TOPOLOGY_TRACE_ONE_IN: 100, "out": options.out})
    orders = builder.add_spout("orders", Orders, par=1)
    price = builder.add_bolt("price", Price, par=4, inputs={orders: Grouping.fields("customer")})
    builder.add_bolt("total", Total, par=1, inputs={price: Grouping.SHUFFLE})
    builder.build_and_submit()
