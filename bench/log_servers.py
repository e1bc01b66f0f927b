"""The servers of the bench `InOut`, with logs that are made, and whose records are counted."""

from __future__ import annotations

import os
import secrets
from abc import ABC, abstractmethod
from pathlib import Path
from typing import ClassVar, Protocol

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.hand_loops import log_namespace, value_of
from bench.records import BenchError
from heron_connector_dlog.log_client import LogClient
from heron_connector_dlog.stream_writer import StreamWriter
from heron_testing_servers.distributedlog import DistributedLogCluster
from heron_testing_servers.kafka import KafkaServer
from heron_testing_servers.kafka_topics import Topics

__all__ = ["Dlog", "Kafka", "LogServer"]

_KEYS = [b"key%d" % number for number in range(100)]
_WAIT_S = 30.0


class Server(Protocol):
    """Of the package for tests."""

    def start(self) -> None: ...
    def kill(self) -> None: ...


class LogServer(ABC):
    """A server with logs. It needs a folder, and is installed when it is made.

    Attributes:
        name: what the loops and the topology call it.
        records_per_s: a first guess of the rate, so that a run takes about the time of the pace.
        server: starts and ends it.
        words: how its clients reach it: arguments of the loops and the topology.
    """

    name: ClassVar[str]
    records_per_s: ClassVar[int]
    server: Server
    words: tuple[str, ...]

    def __init__(self) -> None:
        os.environ.setdefault("HERON_TESTS_CACHE", str(Path.home() / ".cache" / "heron-tests"))

    @abstractmethod
    def make(self) -> str:
        """The name of a new log of one partition."""

    @abstractmethod
    def fill(self, name: str, records: int) -> None:
        """Write records of 100 keys."""

    @abstractmethod
    def count(self, name: str) -> int:
        """How many records a log has."""


class Kafka(LogServer):
    """One broker."""

    name = "kafka"
    records_per_s = 200_000

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.server = server = KafkaServer(folder / "kafka")
        self.words = (server.address,)

    def make(self) -> str:
        """See `LogServer.make`."""
        return Topics(*self.words).make()

    def fill(self, name: str, records: int) -> None:
        """See `LogServer.fill`."""
        producer = Producer({"bootstrap.servers": self.words[0], "linger.ms": 20})
        for number in range(records):
            while True:
                try:
                    producer.produce(name, value_of(number), _KEYS[number % len(_KEYS)])
                except BufferError:
                    producer.poll(0.1)
                else:
                    break
        if producer.flush(_WAIT_S):
            msg = "Kafka did not take the records in time"
            raise BenchError(msg)

    def count(self, name: str) -> int:
        """See `LogServer.count`."""
        consumer = Consumer({"bootstrap.servers": self.words[0], "group.id": name})
        try:
            begin, end = consumer.get_watermark_offsets(TopicPartition(name, 0), timeout=_WAIT_S)
        finally:
            consumer.close()
        return int(end - begin)


class Dlog(LogServer):
    """A ZooKeeper and three bookies, of which one has each record: three copies would fill the machine."""

    name = "dlog"
    records_per_s = 150_000

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.server = server = DistributedLogCluster(folder / "dlog")
        self.words = (f"{server.uri},{server.jars}/*",)

    def make(self) -> str:
        """See `LogServer.make`. The sink of a pipeline adds the number of its task, and its writer makes the log."""
        return f"log{secrets.token_hex(4)}-0"

    def fill(self, name: str, records: int) -> None:
        """See `LogServer.fill`."""
        writer = StreamWriter(LogClient(log_namespace(*self.words)), name)
        try:
            for number in range(records):
                writer.put(value_of(number))
            writer.flush()
        finally:
            writer.close()

    def count(self, name: str) -> int:
        """See `LogServer.count`."""
        client = LogClient(log_namespace(*self.words))
        try:
            return int(client.ask("end", name).split()[-1])
        finally:
            client.close()
