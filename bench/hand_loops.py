"""Loops as somebody writes them by hand with the clients of the connectors, at least once.

``python -m bench.hand_loops in|out kafka|dlog ADDRESS NAME RECORDS`` counts the records of a topic or log by key, or
writes texts and hears whether the cluster has each. It prints records a second. Who writes has written one record
before. The loop over Kafka commits its offsets every 5 s.
"""

from __future__ import annotations

import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer

from heron_connector_dlog import LogNamespace
from heron_connector_dlog.block import blocks_of
from heron_connector_dlog.frames import Kind, more, number_of, open_writer, read, write
from heron_connector_dlog.log_client import Channel, LogClient
from heron_connector_dlog.record import BEGIN

__all__ = ["log_namespace", "value_of"]

_KEY_BYTES = 2  # the end of a value, which is the key of a record of a log
_AT_ONCE = 1000
_WAIT_S = 0.1
_WINDOW_BYTES = 1 << 20
_FRAMES = 20  # on their way
_ONE_COPY = {"bkcEnsembleSize": 1, "bkcWriteQuorumSize": 1, "bkcAckQuorumSize": 1}


def value_of(number: int) -> bytes:
    """The value of a record, 100 bytes."""
    return b"%0100d" % number


def log_namespace(address: str) -> LogNamespace:
    """The namespace of an address, which is a URI, a comma and the jars."""
    uri, _, jars = address.partition(",")
    return LogNamespace(uri, jars, _ONE_COPY)


def _consume_kafka(servers: str, topic: str, records: int) -> float:
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


def _produce_kafka(servers: str, topic: str, records: int) -> float:
    def hear(error: KafkaError | None, message: Message) -> None:
        if error is not None:
            raise KafkaException(error)

    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    producer.produce(topic, value_of(0), on_delivery=hear)
    producer.flush()
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


def _consume_dlog(address: str, name: str, records: int) -> float:
    client = LogClient(log_namespace(address))
    channel = client.channel()
    channel.send(Kind.READ, read(name, BEGIN, _WINDOW_BYTES))
    counts = Counter[bytes]()
    done, begin_s = 0, 0.0
    while done < records:
        body = _next(channel)
        begin_s = begin_s or time.monotonic()
        for block in blocks_of(body):
            for record in block.records(name):
                counts[record.data[-_KEY_BYTES:]] += 1
                done += 1
        channel.send(Kind.MORE, more(len(body)))
    end_s = time.monotonic()
    client.close()
    return records / (end_s - begin_s)


def _produce_dlog(address: str, name: str, records: int) -> float:
    client = LogClient(log_namespace(address))
    channel = client.channel()
    channel.send(Kind.OPEN_WRITER, open_writer(name, "loop", takes_over=True))
    _next(channel)
    channel.send(Kind.WRITE, write(1, [value_of(0)]))
    written = number_of(_next(channel))
    begin_s = time.monotonic()
    waiting: list[bytes] = []
    for number in range(records):
        waiting.append(value_of(number))
        if len(waiting) == _AT_ONCE or number == records - 1:
            first = number + 3 - len(waiting)  # ids count from 1, and one record is there
            channel.send(Kind.WRITE, write(first, waiting))
            waiting.clear()
            while first - written > _FRAMES * _AT_ONCE:
                written = number_of(_next(channel))
    while written <= records:
        written = number_of(_next(channel))
    end_s = time.monotonic()
    client.close()
    return records / (end_s - begin_s)


def _next(channel: Channel) -> bytes:
    while (found := channel.next(_WAIT_S)) is None:
        pass
    return found[1]


_LOOPS: Mapping[tuple[str, str], Callable[[str, str, int], float]] = {
    ("in", "kafka"): _consume_kafka,
    ("out", "kafka"): _produce_kafka,
    ("in", "dlog"): _consume_dlog,
    ("out", "dlog"): _produce_dlog,
}


def main(arguments: Sequence[str]) -> None:
    """Run a loop, and print its rate."""
    way, system, address, name, records = arguments
    sys.stdout.write(f"{_LOOPS[way, system](address, name, int(records))}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
