"""Topics on a real server, for tests: made, filled and read without the code under test."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # its documented place

from heron.clock import monotonic_s

__all__ = ["Topics"]

_S = 30.0


@dataclass
class Topics:
    """Topics of a server."""

    address: str

    def make(self, partitions: int = 1, name: str = "", **settings: str) -> str:
        """A new topic, with another name than all others if none is given; settings have ``_`` for a dot."""
        name = name or f"t{secrets.token_hex(4)}"
        config = {key.replace("_", "."): value for key, value in settings.items()}
        admin = self.admin()
        admin.create_topics([NewTopic(name, partitions, 1, config=config)])[name].result(_S)
        until_s = monotonic_s() + _S
        while name not in admin.list_topics(timeout=_S).topics:  # the controller answers before the broker knows it
            assert monotonic_s() < until_s, f"the broker does not list topic {name}"
        return name

    def remove(self, topic: str) -> None:
        """Delete a topic."""
        admin = self.admin()
        admin.delete_topics([topic])[topic].result(_S)

    def make_again(self, topic: str, partitions: int = 1) -> None:
        """Delete a topic, and create one with its name, as soon as the server permits that."""
        self.remove(topic)
        until_s = monotonic_s() + _S
        while True:
            try:
                self.make(partitions, topic)
            except KafkaException:
                if monotonic_s() >= until_s:
                    raise
            else:
                return

    def admin(self) -> AdminClient:
        """A client for administrators."""
        return AdminClient({"bootstrap.servers": self.address})

    def fill(
        self, topic: str, values: Sequence[object], *, partition: int = 0, keyed: bool = False, time_s: float = 0.0
    ) -> None:
        """Write bytes, or others as text, to a partition; `keyed`: the text is the key, too; `time_s`: not of now."""
        producer = Producer({"bootstrap.servers": self.address, "linger.ms": 0})
        for value in values:
            body = value if isinstance(value, bytes) else str(value)
            producer.produce(topic, body, body if keyed else None, partition, timestamp=round(time_s * 1000))
        assert producer.flush(_S) == 0
        producer.close()

    def transaction(self, topic: str, values: Sequence[object], *, commit: bool = True) -> None:
        """Write texts to partition 0 in one transaction."""
        producer = Producer({"bootstrap.servers": self.address, "transactional.id": f"x{secrets.token_hex(4)}"})
        producer.init_transactions(_S)
        producer.begin_transaction()
        for value in values:
            producer.produce(topic, str(value), None, 0)
        if commit:
            producer.commit_transaction(_S)
        else:
            producer.flush(_S)
            producer.abort_transaction(_S)
        producer.close()

    def values(self, topic: str, isolation: str = "read_committed") -> list[str]:
        """All values of a topic, as a consumer sees them that reads to the ends of now."""
        return [value for _, value in self.pairs(topic, isolation)]

    def pairs(self, topic: str, isolation: str = "read_committed") -> list[tuple[str, str]]:
        """All keys and values, of one partition after the other."""
        return [
            ((each.key() or b"").decode(), (each.value() or b"").decode()) for each in self.messages(topic, isolation)
        ]

    def messages(self, topic: str, isolation: str = "read_committed") -> list[Message]:
        """All records, of one partition after the other."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.address,
                "group.id": f"g{secrets.token_hex(4)}",
                "isolation.level": isolation,
                "enable.auto.commit": False,
                "enable.partition.eof": True,
            }
        )
        found: list[Message] = []
        try:
            for number in sorted(consumer.list_topics(topic, _S).topics[topic].partitions):
                consumer.assign([TopicPartition(topic, number, 0)])
                while (message := consumer.poll(_S)) is not None:
                    if (error := message.error()) is None:
                        found.append(message)
                    elif error.code() == KafkaError._PARTITION_EOF:
                        break
                    else:
                        raise KafkaException(error)
        finally:
            consumer.close()
        return found

    def low(self, topic: str) -> int:
        """The first offset of partition 0."""
        consumer = Consumer({"bootstrap.servers": self.address, "group.id": "low"})
        try:
            low: int = consumer.get_watermark_offsets(TopicPartition(topic, 0), timeout=_S)[0]
            return low
        finally:
            consumer.close()
