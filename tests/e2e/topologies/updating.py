"""Numbers, divided by key and counted, until there is a file ``stop`` among the results.

A tally is written when its task ends, also when an update removes the task. New tasks of ``pass`` fail to start while
there is a file ``broken``, and wait while there is a file ``wait``.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from recording import arguments, write_result

from heron.api import (
    Bolt,
    CounterState,
    Grouping,
    IUpdatable,
    Spout,
    TopologyBuilder,
    TopologyContext,
    Tuple,
    api_constants,
)
from heron.planner.key_group import DEFAULT_KEY_GROUPS, key_group

KEYS = 997


def skewed_keys() -> list[int]:
    """The keys, of which those of the first task of two come four times."""
    return [key for key in range(KEYS) for _ in range(4 if key_group((key,), DEFAULT_KEY_GROUPS) < 512 else 1)]


class NumberSpout(Spout):
    """Emits its task id, a number and a key; with acks, each number has itself as id."""

    outputs = ("task", "number", "key")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.out, self.context = config["out"], context
        self.stop = Path(self.out, "stop")
        self.acked = config["acked"]
        self.keys = skewed_keys() if config["skewed"] else range(KEYS)
        self.pause_s = 0.012 if config["skewed"] else 0.06  # a task that is too small needs a load
        self.task = context.get_task_id()
        self.number = 0

    def next_tuple(self) -> None:
        """Emits a number; looks for the file now and then."""
        if self.number % 1000 == 0 and self.stop.exists():
            self.end()
            return
        if self.number % 20 == 0:
            time.sleep(self.pause_s)  # processor time is left for the commands of a test
        number = self.number
        self.number = number + 1
        self.emit([self.task, number, self.keys[number % len(self.keys)]], tup_id=number if self.acked else None)

    def close(self) -> None:
        """Writes how many numbers it has emitted."""
        write_result(self.out, self.context, [[self.number]])


class PassBolt(Bolt, IUpdatable):
    """Counts numbers by key, and forwards them; writes the value of ``limit`` that its task knows."""

    outputs = ("task", "number", "key")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Starts, unless a file says otherwise."""
        if Path(config["out"], "broken").exists():
            message = "this task does not start"
            raise RuntimeError(message)
        while Path(config["out"], "wait").exists():
            time.sleep(0.02)  # user code that starts slowly: the engine cannot be told to wait
        self.seen = context.keyed_state("seen", CounterState[int])
        self.update(context)

    def update(self, context: TopologyContext) -> None:
        """Writes the value."""
        config = context.get_config()
        Path(config["out"], f"limit-{context.get_task_id()}").write_text(str(config.get("limit")), encoding="utf-8")

    def process(self, tup: Tuple) -> None:
        """Forwards a number. Also one that was on its way while its key got another task has a state."""
        self.seen.add(tup.values[2])
        self.emit(tup.values, anchors=[tup])
        self.ack(tup)


class TallyBolt(Bolt):
    """Counts numbers, their sum and the sum of their squares, by spout task."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """Begins at zero."""
        self.out, self.context = config["out"], context
        self.tallies: dict[int, list[int]] = {}

    def process(self, tup: Tuple) -> None:
        """Counts a number."""
        task, number, _ = tup.values
        tally = self.tallies.setdefault(task, [0, 0, 0])
        tally[0] += 1
        tally[1] += number
        tally[2] += number * number
        self.ack(tup)

    def close(self) -> None:
        """Writes the tallies."""
        write_result(self.out, self.context, [[task, *tally] for task, tally in self.tallies.items()])


if __name__ == "__main__":
    options = arguments(mode=api_constants.TopologyReliabilityMode.ATMOST_ONCE.value, skewed=0)
    acked = options.mode == api_constants.TopologyReliabilityMode.ATLEAST_ONCE
    builder = TopologyBuilder("updating")
    builder.set_config(
        {
            api_constants.TOPOLOGY_STMGRS: 1,
            api_constants.TOPOLOGY_RELIABILITY_MODE: options.mode,
            "out": options.out,
            "acked": acked,
            "skewed": bool(options.skewed),
        }
    )
    numbers = builder.add_spout("numbers", NumberSpout, par=1)
    passed = builder.add_bolt("pass", PassBolt, par=2, inputs={numbers: Grouping.fields("key")})
    builder.add_bolt("tally", TallyBolt, par=1, inputs={passed: Grouping.SHUFFLE})
    builder.build_and_submit()
