"""Reads a Delta table with the column ``text``, in small batches."""

from __future__ import annotations

from heron_connector_delta import DeltaSource
from heron_testing.connectors.programs import read_source

if __name__ == "__main__":
    read_source(lambda given: DeltaSource(given["table"], rows=10), lambda row: str(row["text"]), columns=True)
