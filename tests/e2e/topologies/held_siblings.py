"""Numbers for three tasks of a shuffle. One of them sleeps for each number, and the others idle behind a held spout."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple


class Numbers(Spout):
    """Emits as fast as it may."""

    outputs = ("number",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """The first number is 1."""
        self.number = 0

    def next_tuple(self) -> None:
        """Emit the next number."""
        self.number += 1
        self.emit([self.number])


class Work(Bolt):
    """Keeps nothing."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """The first task is the slow one."""
        self.pause_s = 0.02 if context.get_task_index() == 0 else 0.0

    def process(self, tup: Tuple) -> None:
        """Take a number."""
        if self.pause_s:
            time.sleep(self.pause_s)


builder = TopologyBuilder("held_siblings")
numbers = builder.add_spout("numbers", Numbers, par=1)
builder.add_bolt("work", Work, par=3, inputs={numbers: Grouping.SHUFFLE})
builder.build_and_submit()
