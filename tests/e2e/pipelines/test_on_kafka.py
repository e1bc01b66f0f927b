"""A pipeline from Kafka to Kafka: its results are a recount of the topic, each once, whatever dies."""

from __future__ import annotations

import itertools
import json
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_testing_servers.kafka import KafkaServer
from heron_testing_servers.kafka_topics import Topics
from heron_testing_servers.schema_registry import SchemaRegistryServer

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
    source, target = (topics.make(count, retention_ms="-1") for count in (_PARTITIONS, 2))  # records of years ago stay
    return Feed(topics, source, target, tmp_path)


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


_PAGE = {"type": "record", "name": "Click", "fields": [{"name": "page", "type": "string"}]}
_EPOCH_S = 1_700_000_000.0  # a multiple of ten


def test_records_of_a_registry_are_counted_by_their_time_and_poison_becomes_dead_letters(
    sandbox: Sandbox, feed: Feed, schema_registry: SchemaRegistryServer
) -> None:
    """What cannot be decoded loses nothing else. The backlog is what a consumer of the topic has not read."""
    schema_registry.start()
    pages = [{"page": "/a"}, {"page": "/b"}, {"page": "/c"}]
    values = schema_registry.serialized("AVRO", feed.source, json.dumps(_PAGE), pages)
    feed.topics.fill(feed.source, values[2:] * _EACH, time_s=_EPOCH_S)
    for index, offset_s in enumerate((0.0, 0.0, 9.9, 10.0)):
        feed.topics.fill(feed.source, [values[index % 2]], time_s=_EPOCH_S + offset_s)
    feed.topics.fill(feed.source, [b"poison", values[0][:-1]], time_s=_EPOCH_S + 11)
    for partition in range(_PARTITIONS):
        feed.topics.fill(feed.source, [values[0]], partition=partition, time_s=_EPOCH_S + 100)
    args = (*feed.args, "--registry", schema_registry.url)
    run = sandbox.start("kafka_pages.py", "--set", "heron.metrics.export.s=0.25", args=args)
    sandbox.wait_for_state(run, "kafka_pages")
    run.until(lambda: any(backlogs(sandbox)), "a backlog", _SEEN_S)
    assert sum(backlogs(sandbox)) <= _EACH + 9
    (feed.folder / "staging" / "go").touch()
    run.until(lambda: len(feed.topics.messages(feed.target)) >= 4, "all results", _SEEN_S)
    results = [
        (each.key(), each.value(), each.timestamp()[1] / 1000 - _EPOCH_S, each.headers())
        for each in feed.topics.messages(feed.target)
    ]
    headers = [("kind", b"count")]
    assert sorted(results) == [
        (b"/a", b"2", 0.0, headers),
        (b"/b", b"1", 0.0, headers),
        (b"/b", b"1", 10.0, headers),
        (b"/c", b"%d" % _EACH, 0.0, headers),
    ]
    run.until(lambda: backlogs(sandbox) == [0.0], "no backlog", _SEEN_S)
    letters = json.loads(sandbox.output_of("dead-letters", "kafka_pages", "list", "--json"))
    assert {each["step"] for each in letters} == {"decoded"}
    assert sorted("wire format" in each["error"] for each in letters) == [False, True]
    assert all(f"partition '{feed.source}-0'" in each["tup_id"] for each in letters)


def backlogs(sandbox: Sandbox) -> list[float]:
    """The metric of each task of the source that has it."""
    rows = [row for row in sandbox.metrics("kafka_pages", "records-to-keyby-1") if row["name"] == "backlog"]
    return [row["value"] for row in rows]
