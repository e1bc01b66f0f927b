"""Writes to a Kafka topic. The key of a record is its partition; poison is a value that is no text."""

from __future__ import annotations

from heron_connector_kafka import KafkaSink, Transactions
from heron_testing.connectors.programs import Given, write_sink
from heron_testing.connectors.records import POISON


def sink(given: Given) -> KafkaSink[str]:
    """The sink, with transactions if there is a folder for them."""
    folder = given.get("folder")
    transactions = Transactions(given["topic"], folder) if folder else None
    return KafkaSink(given["servers"], given["topic"], key=key, value=value, transactions=transactions)


def key(text: str) -> str:
    """The partition."""
    return text.split(maxsplit=1)[0]


def value(text: str) -> str:
    """The text; refuses poison."""
    if text.endswith(POISON):
        msg = f"{text!r} is poison"
        raise ValueError(msg)
    return text


if __name__ == "__main__":
    write_sink(sink, str)
