"""A pipeline from Kafka to Kafka: its results are a recount of the topic, each once, whatever dies."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_testing_servers.kafka import KafkaServer
from heron_testing_servers.kafka_topics import Topics

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

_PARTITIONS, _SPAN_S, _EACH = 3, 100, 600
_END_S = 10_000  # an element of this time closes all windows before it
_SEEN_S = 90.0


@dataclass
class Feed:
    """The topics of a run."""

    topics: Topics
    source: str
    target: str
    folder: Path

    @property
    def args(self) -> tuple[str, ...]:
        """Arguments of the program."""
        names = ("--servers", self.topics.address, "--source", self.source, "--target", self.target)
        return (*names, "--staging", str(self.folder / "staging"))

    def half(self, number: int) -> list[list[str]]:
        """The values of each partition: their times ascend, and no partition is behind another one for long."""
        begin, end = number * _EACH // 2, (number + 1) * _EACH // 2
        return [
            [f"{index * _SPAN_S / _EACH:.3f} k{(index * 7 + partition) % 5}" for index in range(begin, end)]
            for partition in range(_PARTITIONS)
        ]

    def fill(self, number: int) -> None:
        """Write a half."""
        for partition, values in enumerate(self.half(number)):
            self.topics.fill(self.source, values, partition=partition)

    def end(self) -> None:
        """Close all windows."""
        for partition in range(_PARTITIONS):
            self.topics.fill(self.source, [f"{_END_S} end"], partition=partition)

    def recount(self) -> list[str]:
        """What the results have to be."""
        counts: Counter[tuple[int, str]] = Counter()
        for number in (0, 1):
            for value in itertools.chain.from_iterable(self.half(number)):
                time, key = value.split()
                counts[int(float(time)) // 10 * 10, key] += 1
        return sorted(f"{start} {key} {count}" for (start, key), count in counts.items())

    def results(self) -> list[str]:
        """What a consumer of committed records sees."""
        return sorted(self.topics.values(self.target))


@pytest.fixture
def feed(kafka: KafkaServer, tmp_path: Path) -> Feed:
    kafka.start()
    topics = Topics(kafka.address)
    return Feed(topics, topics.make(_PARTITIONS), topics.make(2), tmp_path)


def kill_one(run: HeronRun, role: str, name: str) -> None:
    """Kill a process, and wait for the one that replaces it."""
    before = {process.pid for process in run.processes(role, name)}
    run.processes(role, name)[0].kill()
    run.until(lambda: {each.pid for each in run.processes(role, name)} - before, f"another {role}{name}")


def test_results_are_a_recount_whatever_dies(sandbox: Sandbox, feed: Feed) -> None:
    """Offsets, windows and results come back from one checkpoint."""
    feed.fill(0)
    run = sandbox.start("kafka_counts.py", args=feed.args)
    run.until(lambda: len(feed.results()) > 5, "results of the first half", _SEEN_S)
    for role, name in (("instance", "/counts"), ("instance", "/records"), ("stmgr", "")):
        kill_one(run, role, name)
    feed.fill(1)
    kill_one(run, "instance", "/counts")
    feed.end()
    wanted = feed.recount()
    run.until(lambda: len(feed.results()) >= len(wanted), "all results", _SEEN_S)
    assert feed.results() == wanted


def test_bounded_run_ends_at_what_was_there(sandbox: Sandbox, feed: Feed) -> None:
    """The offsets at which it ends are those of the start."""
    feed.fill(0)
    feed.fill(1)
    sandbox.run("kafka_counts.py", args=(*feed.args, "--until", "latest")).finished()
    assert feed.results() == feed.recount()
