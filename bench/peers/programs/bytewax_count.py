"""A running word count on Bytewax, one worker: ``python bytewax_count.py WORDS WARM_UP_S WINDOW_S``.

The file of words is emitted again and again, in batches, until the window is over. Prints JSON on the last line.
"""
# mypy: ignore-errors

import json
import sys
import time
from collections import deque
from pathlib import Path

import bytewax.operators as op
from bytewax.dataflow import Dataflow
from bytewax.inputs import DynamicSource, StatelessSourcePartition
from bytewax.outputs import DynamicSink, StatelessSinkPartition
from bytewax.testing import run_main

BATCH = 1000
WORDS = Path(sys.argv[1]).read_text(encoding="utf-8").split()
WARM_UP_S, WINDOW_S = map(float, sys.argv[2:])


class Words(StatelessSourcePartition):
    """All words, in batches, over and over; it ends behind a whole block."""

    def __init__(self):
        self.at, self.blocks, self.until_s = 0, 0, time.monotonic() + WARM_UP_S + WINDOW_S + 0.5

    def next_batch(self):
        if self.at == 0 and time.monotonic() > self.until_s:
            result["blocks"] = self.blocks
            raise StopIteration
        batch = WORDS[self.at : self.at + BATCH]
        self.at += BATCH
        if self.at >= len(WORDS):
            self.at, self.blocks = 0, self.blocks + 1
        return batch


class Source(DynamicSource):
    """One partition."""

    def build(self, step_id, worker_index, worker_count):
        return Words()


class Counted(StatelessSinkPartition):
    """Counts what arrives, and remembers the newest counts."""

    def __init__(self):
        self.count, self.start_s = 0, 0.0

    def write_batch(self, items):
        now_s = time.monotonic()
        self.start_s = self.start_s or now_s
        self.count += len(items)
        newest.extend(items)
        since_s = now_s - self.start_s
        if since_s >= WARM_UP_S and "first" not in result:
            result["first"] = (now_s, self.count)
        if since_s <= WARM_UP_S + WINDOW_S:
            result["last"] = (now_s, self.count)
        result["count"] = self.count


class Sink(DynamicSink):
    """One partition."""

    def build(self, step_id, worker_index, worker_count):
        return Counted()


def count(state, _word):
    state = (state or 0) + 1
    return state, state


result = {}
newest = deque(maxlen=len(WORDS))
flow = Dataflow("words")
words = op.input("in", flow, Source())
keyed = op.key_on("key", words, lambda word: word)
counts = op.stateful_map("count", keyed, count)
op.output("out", counts, Sink())
run_main(flow)
(first_s, first), (last_s, last) = result["first"], result["last"]
right = result["count"] == result["blocks"] * len(WORDS) and dict(newest) == dict.fromkeys(WORDS, result["blocks"])
print(json.dumps({"per_s": (last - first) / (last_s - first_s), "counted": result["count"], "right": right}))
