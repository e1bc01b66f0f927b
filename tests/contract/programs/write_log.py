"""Writes logs of a namespace of DistributedLog. Poison is an element that is no text."""

from __future__ import annotations

from heron_connector_dlog import DlogSink, LogNamespace
from heron_testing.connectors.programs import Given, write_sink
from heron_testing.connectors.records import POISON

QUORUM = {"bkcEnsembleSize": 2, "bkcWriteQuorumSize": 2, "bkcAckQuorumSize": 2}


def sink(given: Given) -> DlogSink[object]:
    """The sink; each result once if there is a folder."""
    namespace = LogNamespace(given["uri"], given["jars"], QUORUM)
    return DlogSink(namespace, given["stream"], folder=given.get("folder"))


def element(text: str) -> object:
    """The text; poison becomes None."""
    return None if text.endswith(POISON) else text


if __name__ == "__main__":
    write_sink(sink, element)
