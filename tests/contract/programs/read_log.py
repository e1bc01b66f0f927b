"""Reads logs of a namespace of DistributedLog. The data of a record are the text."""

from __future__ import annotations

from heron_connector_dlog import DlogSource, LogNamespace
from heron_testing.connectors.programs import read_source

if __name__ == "__main__":
    read_source(
        lambda given: DlogSource(LogNamespace(given["uri"], given["jars"]), given["streams"]),
        lambda record: record.data.decode(),
    )
