"""Reading tables in a local folder: one version, every position, columns of partitions, and what is refused."""

from __future__ import annotations

import base64
import json
import pickle
import struct
from collections.abc import Callable, Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, write_deltalake
from pyarrow import parquet

from heron.errors import ConnectorError, UnreachableError, UsageError
from heron_connector_delta import DeltaSource
from heron_streamlet.connectors.sources import Reader
from heron_streamlet.connectors.transformer import StageContext

CONTEXT = StageContext("visits")
Z85 = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.-:+=^!/*?&<>()[]{}@%$#"
B85 = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz!#$%&()*+-;<=>?@^_`{|}~"
Opened = Callable[..., Reader[pa.RecordBatch]]


@pytest.fixture
def opened() -> Iterator[Opened]:
    """Opens readers of copies of a source, as tasks do."""
    readers: list[Reader[pa.RecordBatch]] = []

    def open_reader(source: DeltaSource, name: str, position: object = None) -> Reader[pa.RecordBatch]:
        copy: DeltaSource = pickle.loads(pickle.dumps(source))
        readers.append(copy.open(name, position, CONTEXT))
        return readers[-1]

    yield open_reader
    for reader in readers:
        reader.close()


def rest(reader: Reader[pa.RecordBatch]) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while (batches := reader.read(1)) is not None:
        for batch in batches:
            found += batch.to_pylist()
    return found


def everything(source: DeltaSource, opened: Opened, names: Sequence[str] | None = None) -> list[dict[str, Any]]:
    return [row for name in names or source.partitions(2) for row in rest(opened(source, name))]


def test_rows_have_all_columns_of_the_table_in_its_order(tmp_path: Path, opened: Opened) -> None:
    """Values by which the table is partitioned are not in the files; a column may be newer than a file."""
    first = pa.table({"page": ["a b/%ü", None], "n": [1, 2], "day": [date(2026, 1, 1), None]})
    write_deltalake(tmp_path, first, partition_by=["page", "day"])
    newer = pa.table({"page": ["x"], "n": [3], "day": [date(2026, 1, 2)], "late": [[7]]})
    write_deltalake(tmp_path, newer, mode="append", schema_mode="merge")
    source = DeltaSource(tmp_path)
    assert source.bounded
    assert sorted(everything(source, opened), key=lambda row: row["n"]) == [
        {"page": "a b/%ü", "n": 1, "day": date(2026, 1, 1), "late": None},
        {"page": None, "n": 2, "day": None, "late": None},
        {"page": "x", "n": 3, "day": date(2026, 1, 2), "late": [7]},
    ]
    two = DeltaSource(tmp_path, columns=["n", "page"])
    (batch,) = opened(two, two.partitions(1)[0]).read(1) or ()
    assert batch.schema == pa.schema([("n", pa.int64()), ("page", pa.string())])
    pages = sorted(str(row["page"]) for row in everything(DeltaSource(tmp_path, columns=["page"]), opened))
    assert pages == ["None", "a b/%ü", "x"]


def test_version_of_the_start_is_read_whatever_is_written_later(tmp_path: Path, opened: Opened) -> None:
    """A task that restarts reads what the first one read, also after an overwrite."""
    for number in range(3):
        write_deltalake(tmp_path, pa.table({"n": [number]}), mode="append")
    source = DeltaSource(tmp_path)
    names = source.partitions(2)
    assert all(name.startswith("2:part-") for name in names)
    write_deltalake(tmp_path, pa.table({"n": [99]}), mode="overwrite")
    assert sorted(row["n"] for row in everything(source, opened, names)) == [0, 1, 2]
    assert [row["n"] for row in everything(DeltaSource(tmp_path), opened)] == [99]
    assert sorted(row["n"] for row in everything(DeltaSource(tmp_path, version=1), opened)) == [0, 1]


def test_reading_again_from_each_position_gives_the_rest(tmp_path: Path, opened: Opened) -> None:
    """A checkpoint may be behind any batch: exactly once depends on it."""
    write_deltalake(tmp_path, pa.table({"n": list(range(10))}))
    source = DeltaSource(tmp_path, rows=3)
    (name,) = source.partitions(1)
    for count in range(5):
        reader = opened(source, name)
        done = [row["n"] for _ in range(count) for batch in reader.read(1) or () for row in batch.to_pylist()]
        assert done == list(range(min(3 * count, 10)))
        assert [row["n"] for row in rest(opened(source, name, reader.position))] == list(range(len(done), 10))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"rows": 0}, r"DeltaSource: rows=0 is not an integer from 1"),
        ({"version": -1}, r"DeltaSource: version=-1 is not an integer from 0 on"),
        ({"version": True}, r"version=True is not"),
        ({"columns": "n"}, r"columns='n' is not a list of one or more different names"),
        ({"columns": []}, r"columns=\[\] is not"),
        ({"columns": ["n", "n"]}, r"is not a list of one or more different names"),
        ({"table": " "}, r"DeltaSource: table=' ' is neither a path nor a URI"),
        ({"options": {"a": None}}, r"options: 'a' has a value of type NoneType, not a text"),
    ],
)
def test_wrong_source_is_refused_where_it_is_made(arguments: dict[str, Any], message: str) -> None:
    """The author sees the line, and no task starts."""
    with pytest.raises(UsageError, match=message):
        DeltaSource(**{"table": "visits", **arguments})


def test_what_is_not_there_is_an_error_with_what_is(tmp_path: Path) -> None:
    """Tables, versions and columns; a relative path is shown whole."""
    with pytest.raises(UsageError, match=r"there is no table at /.*/no-such"):
        DeltaSource("no-such").partitions(1)
    with pytest.raises(UsageError, match=r"there is no table"):
        DeltaSource(tmp_path).partitions(1)
    write_deltalake(tmp_path, pa.table({"page": [1], "n": [1]}))
    with pytest.raises(UsageError, match=r"no column 'pages' \(nearest: 'page'\); known: page, n"):
        DeltaSource(tmp_path, columns=["pages"]).partitions(1)
    with pytest.raises(UsageError, match=r"no version 7; the newest is 0"):
        DeltaSource(tmp_path, version=7).partitions(1)
    with pytest.raises(UsageError, match=r"source 'visits': there is no partition '0:x' in .*was not called"):
        DeltaSource(tmp_path).open("0:x", None, CONTEXT)
    with pytest.raises(ConnectorError, match=r"table foo://bar: Unknown scheme"):
        DeltaSource("foo://bar").partitions(1)


def test_version_whose_files_or_log_are_gone_is_an_error(tmp_path: Path, opened: Opened) -> None:
    """The source never goes on with other rows by itself."""
    write_deltalake(tmp_path, pa.table({"n": [1]}))
    source = DeltaSource(tmp_path)
    (name,) = source.partitions(1)
    write_deltalake(tmp_path, pa.table({"n": [2]}), mode="overwrite")
    table = DeltaTable(tmp_path)
    table.vacuum(retention_hours=0, enforce_retention_duration=False, dry_run=False)
    with pytest.raises(ConnectorError, match=r"source 'visits', .* version 0, file part-.*: the file is gone; VACUUM"):
        opened(source, name)
    table.create_checkpoint()
    (tmp_path / "_delta_log" / "00000000000000000000.json").unlink()
    with pytest.raises(UsageError, match=r"version 0 cannot be read any more; .*delta\.logRetentionDuration"):
        DeltaSource(tmp_path, version=0).partitions(1)


def test_file_that_is_no_parquet_or_has_another_type_is_an_error(tmp_path: Path, opened: Opened) -> None:
    """The message names the file, and the column."""
    write_deltalake(tmp_path, pa.table({"n": [1]}))
    source = DeltaSource(tmp_path)
    (name,) = source.partitions(1)
    (path,) = tmp_path.glob("*.parquet")
    parquet.write_table(pa.table({"n": ["x"]}), path)
    with pytest.raises(
        ConnectorError, match=r"file part-.*: column 'n' of type string does not fit the table's int64$"
    ):
        opened(source, name).read(1)
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(ConnectorError, match=r"table .*: Parquet"):
        opened(source, name)


def commit(table: Path, version: int, *actions: dict[str, Any]) -> None:
    lines = "\n".join(map(json.dumps, actions))
    (table / "_delta_log" / f"{version:020}.json").write_text(lines, encoding="utf-8")


def added(table: Path) -> dict[str, Any]:
    lines = (table / "_delta_log" / f"{0:020}.json").read_text(encoding="utf-8").splitlines()
    action: dict[str, Any] = next(each for each in map(json.loads, lines) if "add" in each)
    return action


def test_deletion_vectors_are_refused_and_versions_without_them_are_read(tmp_path: Path, opened: Opened) -> None:
    """The files alone still have the rows. The vector removes the rows 0 and 2, in the format of the protocol."""
    write_deltalake(tmp_path, pa.table({"n": [1, 2, 3]}))
    features = ["deletionVectors"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
    commit(tmp_path, 1, {"protocol": protocol})
    assert [row["n"] for row in everything(DeltaSource(tmp_path), opened)] == [1, 2, 3]
    bitmap = struct.pack("<IQIIIHHIHH", 1681511377, 1, 0, 12346, 1, 0, 1, 16, 0, 2)
    text = base64.b85encode(bitmap).decode().translate(str.maketrans(B85, Z85))
    vector = {"storageType": "i", "pathOrInlineDv": text, "sizeInBytes": len(bitmap), "cardinality": 2}
    add = added(tmp_path)["add"]
    removed = {"path": add["path"], "dataChange": True, "deletionTimestamp": 1}
    commit(tmp_path, 2, {"remove": removed}, {"add": {**add, "deletionVector": vector}})
    with pytest.raises(ConnectorError, match=r"1 files of version 2 have rows that deletion vectors remove; run REORG"):
        DeltaSource(tmp_path).partitions(1)
    assert len(everything(DeltaSource(tmp_path, version=1), opened)) == 3


def test_mapped_columns_and_unknown_features_are_refused(tmp_path: Path) -> None:
    """Their rows are not those of the files."""
    schema = '{"type":"struct","fields":[{"name":"n","type":"long","nullable":true,"metadata":%s}]}'
    mapped = '{"delta.columnMapping.id":1,"delta.columnMapping.physicalName":"col-1"}'
    meta = {"id": "m", "format": {"provider": "parquet", "options": {}}, "partitionColumns": []}
    for name, mapping, features in (("mapped", "name", ["columnMapping"]), ("unknown", "none", ["noSuchFeature"])):
        table = tmp_path / name
        (table / "_delta_log").mkdir(parents=True)
        given = {"minReaderVersion": 3, "minWriterVersion": 7, "readerFeatures": features, "writerFeatures": features}
        text = schema % (mapped if mapping == "name" else "{}")
        properties = {"delta.columnMapping.mode": mapping, "delta.columnMapping.maxColumnId": "1"}
        metadata = {**meta, "schemaString": text, "configuration": properties if mapping == "name" else {}}
        commit(table, 0, {"protocol": given}, {"metaData": metadata})
    with pytest.raises(ConnectorError, match=r"other names in the files \(delta\.columnMapping\.mode=name\)"):
        DeltaSource(tmp_path / "mapped").partitions(1)
    with pytest.raises(ConnectorError, match=r"table .*unknown: .*noSuchFeature"):
        DeltaSource(tmp_path / "unknown").partitions(1)


def test_options_of_a_function_are_asked_for_in_each_process(tmp_path: Path) -> None:
    """A password is not part of the topology."""
    write_deltalake(tmp_path, pa.table({"n": [1]}))
    source = DeltaSource(tmp_path, options=secret_options)
    source.partitions(1)
    assert b"hidden" not in pickle.dumps(source)
    away = {"AWS_ENDPOINT_URL": "http://127.0.0.1:1", "AWS_ALLOW_HTTP": "true", "max_retries": "0"}
    keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_REGION": "c"}
    with pytest.raises(UnreachableError, match=r"table s3://bucket/visits: .*Connection refused"):
        DeltaSource("s3://bucket/visits", options={**away, **keys}).partitions(1)


def secret_options() -> dict[str, str]:
    """What a task reads from a file."""
    return {"password": "hid" + "den"}
