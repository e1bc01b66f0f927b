"""A source of known rate whose keys nearly all belong to the first of two tasks, and a bolt that waits for each."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from recording import arguments

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple
from heron.planner.key_group import DEFAULT_KEY_GROUPS, key_group

EVENTS_PER_S = 130.0
EVENT_S = 0.01
KEYS = 190, 10
"""Keys in the lower half of all key groups, which the first of two tasks owns at first, and in the upper half."""


def keys_of(half: int) -> Iterator[str]:
    """Keys in the lower half (0) or the upper half (1) of all key groups."""
    for number in itertools.count():
        key = f"key-{number}"
        if 2 * key_group((key,), DEFAULT_KEY_GROUPS) // DEFAULT_KEY_GROUPS == half:
            yield key


class Events(Spout):
    """Emits the keys in turn at a fixed pace, and ends when the file ``stop`` appears."""

    outputs = ("key", "text")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        """The first event is due now."""
        self.stop = Path(config["out"], "stop")
        self.due_s = time.monotonic()
        keys = [key for half, many in enumerate(KEYS) for key in itertools.islice(keys_of(half), many)]
        self.keys = itertools.cycle(keys)

    def next_tuple(self) -> None:
        """Emits the event that is due; a source that was held back is not faster afterwards."""
        now_s = time.monotonic()
        if self.stop.exists():
            self.end()
        elif now_s >= self.due_s:
            self.due_s = max(self.due_s + 1.0 / EVENTS_PER_S, now_s - 0.1)
            self.emit([next(self.keys), "x" * 1000])


class Work(Bolt):
    """Waits for each event, as for a service: it needs no processor."""

    def process(self, tup: Tuple) -> None:
        """Emits nothing."""
        time.sleep(EVENT_S)


options = arguments()
builder = TopologyBuilder("skewed")
events = builder.add_spout("events", Events, par=1, config={"out": options.out})
builder.add_bolt("work", Work, par=2, inputs={events: Grouping.fields("key")})
builder.build_and_submit()
