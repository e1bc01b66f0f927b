"""Loops as somebody writes them by hand with the client of ``heron-connector-kafka``, at least once.

``python -m bench.kafka_programs consume SERVERS TOPIC RECORDS`` counts records by key, and commits offsets every 5 s.
``… produce SERVERS TOPIC RECORDS`` writes texts, and hears whether the cluster has each. Both print records a second.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

__all__ = ["KEYS", "value_of"]

KEYS = [b"key%d" % number for number in range(100)]
_AT_ONCE = 1000
_WAIT_S = 0.1


def value_of(number: int) -> bytes:
    """The value of a record, 100 bytes."""
    return b"%0100d" % number


def _consume(servers: str, topic: str, records: int) -> float:
    group = f"{topic}-{os.getpid()}"  # of this run alone: another one would go on behind the offsets that it commits
    consumer = Consumer({"bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    counts = Counter[bytes | None]()
    done, begin_s = 0, 0.0
    while done < records:
        messages = consumer.consume(_AT_ONCE, _WAIT_S)
        begin_s = begin_s or (time.monotonic() if messages else 0.0)
        for message in messages:
            if (error := message.error()) is not None:
                raise KafkaException(error)
            counts[message.key()] += 1
            done += 1
    end_s = time.monotonic()
    consumer.close()
    return records / (end_s - begin_s)


def _produce(servers: str, topic: str, records: int) -> float:
    def hear(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)

    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    begin_s = time.monotonic()
    for number in range(records):
        while True:
            try:
                producer.produce(topic, value_of(number), on_delivery=hear)
            except BufferError:
                producer.poll(_WAIT_S)
            else:
                break
        producer.poll(0)
    producer.flush()
    return records / (time.monotonic() - begin_s)


def main(arguments: Sequence[str]) -> None:
    """Run a loop, and print its rate."""
    what, servers, topic, records = arguments
    rate = (_consume if what == "consume" else _produce)(servers, topic, int(records))
    sys.stdout.write(f"{rate}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
