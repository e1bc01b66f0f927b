"""LiveState: tuples of many keys change values in keyed state; another spout and bolt have no stream to them.

The bolts at both ends record the longest time without a tuple. They record it in shared memory, so it contains deaths,
restores and updates. `bench.silence` reads it.
"""

from __future__ import annotations

import mmap
import os
import sys
import time
from array import array
from collections.abc import Mapping, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any

from bench_record import STOP_FILE, options

from heron.api import (
    Bolt,
    Grouping,
    Spout,
    State,
    StatefulComponent,
    TopologyBuilder,
    TopologyContext,
    Tuple,
    ValueState,
    api_constants,
)

BLOCK = 500
BEHIND_S = 0.5  # a spout that restarts does not emit what was due before
SILENCE_BYTES = 24  # three doubles: last tuple, longest time without one, tuples; each is stored at once


class KeySpout(Spout, StatefulComponent):
    """Emits the keys in turn, at a rate or as fast as it can, with the time at which each is due."""

    outputs = ("key", "due_s")

    def init_state(self, state: State) -> None:
        """Keep nothing: the keys have no end and no order that matters."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.stop = Path(config["folder"]) / STOP_FILE
        self.keys = cycle(range(config["keys"]))
        self.rate = config["rate"]
        self.due_s = time.monotonic()

    def next_tuple(self) -> None:
        if self.stop.exists():
            self.end()
            return
        now_s = time.monotonic()
        if not self.rate:
            for _ in range(BLOCK):
                self.emit([next(self.keys), now_s])
            return
        self.due_s = max(self.due_s, now_s - BEHIND_S)
        while self.due_s <= now_s:
            self.emit([next(self.keys), self.due_s])
            self.due_s += 1.0 / self.rate


class OtherSpout(KeySpout):
    """The spout of the untouched part: a tuple each millisecond."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        super().initialize({**config, "rate": 1000}, context)


class ValueBolt(Bolt):
    """Replaces the value of the key; notes when its task has begun to process."""

    outputs = ("due_s",)

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.values: ValueState[int, bytes] = context.keyed_state("values", ValueState)
        self.words, self.count = config["bytes"] // 8, 0
        if not len(self.values):
            for key in filter(context.owns, range(config["keys"])):
                self.values.put(key, key.to_bytes(8, "little") * self.words)
        self.began: Path | None = Path(config["folder"]) / f"began-{context.get_task_id()}"

    def process(self, tup: Tuple) -> None:
        if self.began is not None:
            self.began.write_text(str(time.monotonic()), encoding="utf-8")
            self.began = None
        key, due_s = tup.values
        self.count += 1
        self.values.put(key, self.count.to_bytes(8, "little") * self.words)  # no two values are the same object
        self.emit([due_s])


class SilenceBolt(Bolt):
    """Records the longest time between two tuples, and how late tuples are if they come at a rate."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        stem = Path(config["folder"]) / context.get_component_id()
        self.late = stem.with_suffix(".late").open("ab")
        self.latencies, self.rate = array("d"), config["rate"]
        file = os.open(stem.with_suffix(".silence"), os.O_RDWR | os.O_CREAT, 0o600)
        os.truncate(file, SILENCE_BYTES)
        self.shared = memoryview(mmap.mmap(file, SILENCE_BYTES)).cast("d")
        os.close(file)

    def process(self, tup: Tuple) -> None:
        now_s, shared = time.monotonic(), self.shared
        if shared[0] and now_s - shared[0] > shared[1]:
            shared[1] = now_s - shared[0]
        shared[0] = now_s
        shared[2] += 1
        if self.rate:
            due_s = tup.values[-1]
            self.latencies.extend((due_s, now_s - due_s))
            if len(self.latencies) >= self.rate:
                self.close()

    def close(self) -> None:
        """Write the latencies so far."""
        self.latencies.tofile(self.late)
        self.late.flush()
        del self.latencies[:]


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    chosen = options(arguments, rate=0, keys=1000, bytes=10_000, tasks=2, interval_ms=0)
    once = chosen.interval_ms > 0
    modes = api_constants.TopologyReliabilityMode
    builder = TopologyBuilder("LiveState")
    builder.set_config(
        {
            api_constants.TOPOLOGY_RELIABILITY_MODE: modes.EFFECTIVELY_ONCE if once else modes.ATMOST_ONCE,
            api_constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: chosen.interval_ms / 1000 if once else 300,
            **{name: getattr(chosen, name) for name in ("folder", "rate", "keys", "bytes")},
        }
    )
    spout = builder.add_spout("spout", KeySpout, par=1)
    value = builder.add_bolt("value", ValueBolt, par=chosen.tasks, inputs={spout: Grouping.fields("key")})
    builder.add_bolt("last", SilenceBolt, par=1, inputs={value: Grouping.SHUFFLE})
    other = builder.add_spout("other", OtherSpout, par=1)
    builder.add_bolt("apart", SilenceBolt, par=1, inputs={other: Grouping.SHUFFLE})
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
