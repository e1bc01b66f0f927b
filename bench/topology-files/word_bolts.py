"""The bolts that count words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from bench_record import CountLog

from heron.api import Bolt, TopologyContext, Tuple


class CountBolt(Bolt):
    """Counts words. The fields grouping brings every occurrence of a word to the same task."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.record = CountLog(config, context)
        self.counts: dict[str, int] = {}

    def process(self, tup: Tuple) -> None:
        word = tup.values[0]
        self.counts[word] = self.counts.get(word, 0) + 1

    def process_tick(self, tup: Tuple) -> None:
        self.record.note(sum(self.counts.values()))

    def finish(self) -> None:
        self.record.conclude(self.counts)


class AckedCountBolt(CountBolt):
    """Acks each word that it counts."""

    def process(self, tup: Tuple) -> None:
        word = tup.values[0]
        self.counts[word] = self.counts.get(word, 0) + 1
        self.ack(tup)
