"""Writes to a Delta table with the column ``text``; poison is a row that does not fit."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa

from heron_connector_delta import DeltaSink
from heron_testing.connectors.programs import Given, write_sink
from heron_testing.connectors.records import POISON


def sink(given: Given) -> DeltaSink:
    """The sink."""
    return DeltaSink(given["table"], id="texts", folder=given["folder"], schema=pa.schema([("text", pa.string())]))


def row(text: str) -> Mapping[str, object]:
    """The row of a text."""
    return {"text": 4711 if text.endswith(POISON) else text}


if __name__ == "__main__":
    write_sink(sink, row)
