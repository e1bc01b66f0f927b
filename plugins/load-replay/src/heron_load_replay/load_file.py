"""The file of a captured load: Parquet, one row for each kept tuple, and a description in its metadata.

docs/load.md describes the columns.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from heron.spi.typed_values import decode_json
from heron_load_replay.load_description import FORMAT, LoadDescription
from heron_load_replay.load_rows import LoadRow
from heron_load_replay.plain_rows import LoadFileError

__all__ = ["read_description", "read_rows", "write_load"]

_KEY = b"heron.load"
_GROUP_ROWS = 16_384
_NAMES = pa.dictionary(pa.int32(), pa.string())
_SCHEMA = pa.schema(
    [
        pa.field("due_us", pa.int64(), nullable=False),
        pa.field("component", _NAMES, nullable=False),
        pa.field("task", pa.int32(), nullable=False),
        pa.field("partition", pa.int32(), nullable=False),
        pa.field("stream", _NAMES, nullable=False),
        pa.field("tuples", pa.int64(), nullable=False),
        pa.field("bytes", pa.int32(), nullable=False),
        pa.field("values", pa.binary(), nullable=False),
    ]
)


def write_load(path: Path, description: LoadDescription, rows: Iterable[LoadRow]) -> None:
    """Write a file, which replaces the one at that path when it is complete.

    Raises:
        LoadFileError: when the disk is full or the folder cannot be written; then nothing is left behind.
    """
    part = path.with_name(f".{path.name}.part")
    schema = _SCHEMA.with_metadata({_KEY: msgspec.json.encode(description)})
    try:
        try:
            with pq.ParquetWriter(part, schema, compression="zstd") as writer:
                following = iter(rows)
                while chunk := list(islice(following, _GROUP_ROWS)):
                    writer.write_batch(_batch(chunk, schema))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)
    except OSError as error:
        msg = f"{path}: cannot be written: {os.strerror(error.errno) if error.errno else error}"
        raise LoadFileError(msg) from error


def read_description(path: Path) -> LoadDescription:
    """Return the description of a file.

    Raises:
        LoadFileError: when it cannot be read, is not Parquet, is no captured load, or has another format.
    """
    with _opened(path) as file:
        return _description(path, file)


def read_rows(path: Path, component: str, partitions: Iterable[int]) -> Iterator[LoadRow]:
    """Return the rows of some partitions of a component, in the order of the file.

    Raises:
        LoadFileError: as `read_description`; also when a part of the file is damaged.
    """
    wanted = frozenset(partitions)
    with _opened(path) as file:
        _description(path, file)
        try:
            for batch in file.iter_batches(_GROUP_ROWS, columns=[each for each in _SCHEMA.names if each != "bytes"]):
                for row in zip(*(column.to_pylist() for column in batch.columns), strict=True):
                    if row[1] == component and row[3] in wanted:
                        yield LoadRow(*row)
        except (pa.ArrowException, OSError) as error:
            msg = f"{path}: is damaged: {error}"
            raise LoadFileError(msg) from error


def _batch(rows: list[LoadRow], schema: pa.Schema) -> pa.RecordBatch:
    columns = [
        [row.due_us for row in rows],
        [row.component for row in rows],
        [row.task_id for row in rows],
        [row.partition for row in rows],
        [row.stream for row in rows],
        [row.tuples for row in rows],
        [len(row.values) for row in rows],
        [row.values for row in rows],
    ]
    arrays = [pa.array(each, type=kind) for each, kind in zip(columns, schema.types, strict=True)]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _opened(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowException, OSError) as error:
        why = os.strerror(error.errno) if isinstance(error, OSError) and error.errno else "it is no Parquet file"
        msg = f"{path}: cannot be read: {why}; give a file that `heron capture` has written"
        raise LoadFileError(msg) from error


def _description(path: Path, file: pq.ParquetFile) -> LoadDescription:
    schema = file.schema_arrow
    data = (schema.metadata or {}).get(_KEY)
    if data is None:
        msg = f"{path}: is no captured load; give a file that `heron capture` has written"
        raise LoadFileError(msg)
    try:
        found = decode_json(data, _Numbered).format
        if found != FORMAT:
            msg = f"{path}: has format {found}, and this version of heron-load-replay reads format {FORMAT}"
            raise LoadFileError(msg)
        description = decode_json(data, LoadDescription)
    except msgspec.MsgspecError as error:
        msg = f"{path}: its description is damaged: {error}"
        raise LoadFileError(msg) from error
    if schema.remove_metadata() != _SCHEMA:
        msg = f"{path}: has other columns than a captured load: {', '.join(schema.names)[:200]}"
        raise LoadFileError(msg)
    return description


class _Numbered(msgspec.Struct):
    format: int
