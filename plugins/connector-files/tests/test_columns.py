"""The lines of logs as columns."""

from __future__ import annotations

from pathlib import Path

import pytest

from heron.errors import UsageError
from heron_connector_files import FilesSource
from heron_connector_files.columns import FileColumns
from heron_streamlet.connectors.sources import GaugedReader
from heron_streamlet.connectors.transformer import StageContext

CONTEXT = StageContext("lines")


def test_batches_have_the_lines_and_reading_goes_on_behind_each(tmp_path: Path) -> None:
    """A checkpoint lies between two batches; a file that has grown meanwhile gives the same lines once."""
    log = tmp_path / "app.log"
    log.write_bytes(b"one\ntwo\n\xff\nfour\n")
    source = FileColumns(FilesSource(tmp_path, partitions=1), rows=3)
    (name,) = source.partitions(1)
    reader = source.open(name, None, CONTEXT)
    (batch,) = reader.read(10) or ()
    assert batch.to_pydict() == {
        "log": ["app.log"] * 3,
        "offset": [0, 4, 8],
        "data": [b"one", b"two", b"\xff"],
        "is_complete": [True] * 3,
    }
    assert (reader.backlog(), isinstance(reader, GaugedReader)) == (1.5, True)  # in lines
    place = reader.position
    reader.close()
    with log.open("ab") as file:
        file.write(b"five\n")
    again = source.open(name, place, CONTEXT)
    (batch,) = again.read(10) or ()
    assert batch.column("data").to_pylist() == [b"four", b"five"]
    assert not again.read(10)
    again.close()


def test_a_wrong_number_of_rows_is_refused(tmp_path: Path) -> None:
    """Before the pipeline starts."""
    with pytest.raises(UsageError, match="rows=0"):
        FileColumns(FilesSource(tmp_path), rows=0)
