"""Mentions of topics by users, offered at a rate that the counting bolt cannot follow, for a given time."""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from heron.api import Bolt, Grouping, Spout, TopologyBuilder, TopologyContext, Tuple, api_constants

TOPICS, USERS = 40, 4_000
Mention = tuple[str, int, float]


def mentions(number: int) -> Iterator[Mention]:
    """Yield the same mentions each time, with user and length. As in examples/trends.py, one topic is a favourite."""
    chance = random.Random(1)
    for position in range(number):
        favourite = position * TOPICS // number
        topic = favourite if chance.random() < 0.2 else min(int(chance.paretovariate(0.8)), TOPICS) - 1
        yield f"#topic{topic}", int(USERS * chance.random() ** 2), chance.lognormvariate(3.0, 0.5)


class MentionSpout(Spout):
    """Emits each mention when it is due; it ends when the time is over, also if it was held back."""

    outputs = ("due_s", "topic", "user", "length")

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.folder, self.rate, self.seconds = config["folder"], config["rate"], config["seconds"]
        self.mentions = mentions(self.rate * self.seconds)
        self.start_s = time.monotonic()
        self.emitted = 0

    def next_tuple(self) -> None:
        due_s = self.start_s + self.emitted / self.rate
        now_s = time.monotonic()
        if now_s >= self.start_s + self.seconds:
            self.end()
        elif due_s <= now_s:
            for each in self.mentions:
                self.emit([due_s, *each], tup_id=self.emitted)
                self.emitted += 1
                return
            self.end()

    def backlog(self) -> float | None:
        offered: float = (time.monotonic() - self.start_s) * self.rate
        return max(0.0, offered - self.emitted)


class TrendBolt(Bolt):
    """Counts at most `capacity` tuples per second: it sleeps in between."""

    def initialize(self, config: Mapping[str, Any], context: TopologyContext) -> None:
        self.folder, self.each_s = config["folder"], 1 / config["capacity"]
        self.next_s = time.monotonic()
        self.counts: Counter[str] = Counter()
        self.users: dict[int, float] = {}
        self.weight = self.total = 0.0
        self.lates: list[float] = []

    def process(self, tup: Tuple) -> None:
        due_s, topic, user, length = tup.values
        self.next_s = max(self.next_s, time.monotonic() - 0.05) + self.each_s
        if (wait_s := self.next_s - time.monotonic()) > 0.005:
            time.sleep(wait_s)
        self.counts[topic] += tup.weight  # type: ignore[assignment]  # a counter of floats
        self.users[user] = min(tup.weight, self.users.get(user, tup.weight))
        self.weight += tup.weight
        self.total += tup.weight * length
        self.lates.append(time.monotonic() - due_s)
        self.ack(tup)

    def finish(self) -> None:
        found = {
            "count": self.weight,
            "sum": self.total,
            "top": self.counts.most_common(10),
            "users": sum(self.users.values()),
            "seen": len(self.users),
            "lates": sorted(self.lates),
        }
        Path(self.folder, "found.json").write_text(json.dumps(found), encoding="utf-8")


def topology(arguments: Sequence[str]) -> TopologyBuilder:
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", required=True)
    for name, default in {"rate": 2000, "seconds": 20, "capacity": 1000, "drop": 0}.items():
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--shed", default="")
    parser.add_argument("--mode", default="ATMOST_ONCE")
    chosen = parser.parse_args(arguments)
    builder = TopologyBuilder("shed_trends")
    own = {name: getattr(chosen, name) for name in ("folder", "rate", "seconds", "capacity")}
    delivery = {
        api_constants.TOPOLOGY_RELIABILITY_MODE: chosen.mode,
        api_constants.TOPOLOGY_DROPTUPLES_UPON_BACKPRESSURE: bool(chosen.drop),
    }
    builder.set_config({**own, **delivery})
    shed = {api_constants.TOPOLOGY_SHED: json.loads(chosen.shed)} if chosen.shed else {}
    spout = builder.add_spout("spout", MentionSpout, par=1, config=shed)
    builder.add_bolt("last", TrendBolt, par=1, inputs={spout: Grouping.ALL})
    return builder


if __name__ == "__main__":
    topology(sys.argv[1:]).build_and_submit()
