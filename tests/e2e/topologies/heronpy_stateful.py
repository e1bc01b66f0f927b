"""A program for heronpy that counts words effectively once: both components keep their state with each checkpoint.

heron run heronpy_stateful.py -- NAME FOLDER
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections import Counter
from typing import Any

import heronpy.api.api_constants as constants
from heronpy.api.bolt.bolt import Bolt
from heronpy.api.spout.spout import Spout
from heronpy.api.state.stateful_component import StatefulComponent
from heronpy.api.stream import Grouping
from heronpy.api.topology import TopologyBuilder

WORDS = ["hello", "bye", "good", "bad", "heron"]
TUPLES = 4000


class StatefulWordSpout(Spout, StatefulComponent):
    outputs = ["word"]

    def init_state(self, stateful_state: Any) -> None:
        self.recovered_state = stateful_state

    def pre_save(self, checkpoint_id: str) -> None:
        self.recovered_state.put("emitted", self.emitted)

    def initialize(self, config: Any, context: Any) -> None:
        self.emitted = self.recovered_state.get("emitted") or 0

    def next_tuple(self) -> None:
        if self.emitted < TUPLES:
            time.sleep(0.001)  # some processor time is left for the commands of a test
            self.emit([WORDS[self.emitted % len(WORDS)]])
            self.emitted += 1


class StatefulCountBolt(Bolt, StatefulComponent):
    outputs = ["word", "count"]

    def init_state(self, stateful_state: Any) -> None:
        self.recovered_state = stateful_state

    def pre_save(self, checkpoint_id: str) -> None:
        for word, count in self.counter.items():
            self.recovered_state.put(word, count)

    def initialize(self, config: Any, context: Any) -> None:
        self.counter = Counter({word: self.recovered_state.get(word) for _, word in self.recovered_state.enumerate()})
        self.path = os.path.join(config["folder"], f"counts-{context.get_task_id()}.json")

    def process(self, tup: Any) -> None:
        word = tup.values[0]
        self.counter[word] += 1
        self.emit([word, self.counter[word]])

    def process_tick(self, tup: Any) -> None:
        with open(f"{self.path}.new", "w") as file:
            json.dump(self.counter, file)
        os.replace(f"{self.path}.new", self.path)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        print("Topology's name or folder not specified")
        sys.exit(1)
    builder = TopologyBuilder(name=sys.argv[1])
    word_spout = builder.add_spout("word_spout", StatefulWordSpout, par=2)
    builder.add_bolt(
        "count_bolt",
        StatefulCountBolt,
        par=2,
        inputs={word_spout: Grouping.fields("word")},
        config={constants.TOPOLOGY_TICK_TUPLE_FREQ_SECS: 0.2},
    )
    builder.set_config(
        {
            constants.TOPOLOGY_RELIABILITY_MODE: constants.TopologyReliabilityMode.EFFECTIVELY_ONCE,
            constants.TOPOLOGY_STATEFUL_CHECKPOINT_INTERVAL_SECONDS: 0.5,
            "folder": sys.argv[2],
        }
    )
    builder.build_and_submit()
