"""`KafkaSink` keeps the contract of sinks, with and without transactions, with a real broker."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron_testing.connectors.feeds import SinkTarget
from heron_testing.contracts.sink import SinkContract
from heron_testing_servers.kafka import KafkaServer
from heron_testing_servers.kafka_topics import Topics

_WRITE_TOPIC = Path(__file__).parent / "programs" / "write_topic.py"


class TopicTarget(SinkTarget):
    """A topic, as a consumer of committed records reads it."""

    def __init__(self, server: KafkaServer, folder: Path | None) -> None:
        server.start()
        self._server, self._topics = server, Topics(server.address)
        self._topic = self._topics.make(2, flush_messages="1")
        self.given = {"servers": server.address, "topic": self._topic, "folder": folder and str(folder)}

    def written(self) -> list[str]:
        """Of one partition after the other."""
        return self._topics.values(self._topic)

    def stop_server(self) -> None:
        """Kill the broker."""
        self._server.kill()

    def start_server(self) -> None:
        """Start it on its data."""
        self._server.start()


class TestKafkaSink(SinkContract):
    """Without transactions, some records are there twice after a death."""

    program = _WRITE_TOPIC
    exact = False

    @pytest.fixture
    def target(self, kafka: KafkaServer) -> SinkTarget:
        """A topic of this test."""
        return TopicTarget(kafka, None)


class TestKafkaSinkWithTransactions(SinkContract):
    """Each record once. A run with 134 MB that waited did not end within 90 s, so the bound of memory is not shown."""

    program = _WRITE_TOPIC
    bounded_while_away = False

    @pytest.fixture
    def target(self, kafka: KafkaServer, tmp_path: Path) -> SinkTarget:
        """A topic of this test, and a folder for what waits."""
        return TopicTarget(kafka, tmp_path / "staging")
