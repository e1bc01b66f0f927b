"""`KafkaSource` keeps the contract of sources, with a real broker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from heron_testing.connectors.feeds import SourceFeed
from heron_testing.contracts.source import SourceContract
from heron_testing_servers.kafka import KafkaServer
from heron_testing_servers.kafka_topics import Topics


class TopicFeed(SourceFeed):
    """A topic with as many partitions."""

    def __init__(self, server: KafkaServer) -> None:
        self._server, self._topics = server, Topics(server.address)
        self._topic = self._topics.make(4, flush_messages="1")
        self.given = {"servers": server.address, "topic": self._topic}

    def put(self, partition: int, texts: Sequence[str]) -> None:
        """Produce records."""
        self._topics.fill(self._topic, texts, partition=partition)

    def stop_server(self) -> None:
        """Kill the broker."""
        self._server.kill()

    def start_server(self) -> None:
        """Start it on its data."""
        self._server.start()


class TestKafkaSource(SourceContract):
    """Each topic partition is a partition."""

    program = Path(__file__).parent / "programs" / "read_topic.py"
    partitions = 4
    tells_backlog = True

    @pytest.fixture
    def feed(self, kafka: KafkaServer) -> SourceFeed:
        """A topic of this test."""
        kafka.start()
        return TopicFeed(kafka)
