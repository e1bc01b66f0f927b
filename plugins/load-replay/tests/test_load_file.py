"""The file of a captured load: what was written comes back, and everything else is refused by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from heron_load_replay.load_description import FORMAT, LoadDescription, SpoutLoad
from heron_load_replay.load_file import read_description, read_rows, write_load
from heron_load_replay.load_rows import LoadRow
from heron_load_replay.plain_rows import LoadFileError, packed_row

LOAD = LoadDescription(
    FORMAT, "words", 1e9, 2.0, shape=False, spouts={"words": SpoutLoad({"default": ("word",)}, (2, 1))}
)
ROWS = [
    LoadRow(0, "words", 1, 0, "default", 1, packed_row(("a",))),
    LoadRow(10, "words", 2, 1, "default", 1, packed_row(("b",))),
    LoadRow(20, "words", 1, 0, "default", 1, packed_row(("c",))),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A complete file."""
    path = tmp_path / "load.parquet"
    write_load(path, LOAD, ROWS)
    return path


def test_rows_come_back_by_partition(file: Path) -> None:
    """Each task of a replay reads its own."""
    assert read_description(file) == LOAD
    assert list(read_rows(file, "words", [0])) == [ROWS[0], ROWS[2]]
    assert list(read_rows(file, "words", [0, 1])) == ROWS
    assert list(read_rows(file, "other", [0])) == []
    assert sorted(each.name for each in file.parent.iterdir()) == ["load.parquet"]


def test_any_reader_of_parquet_reads_times_and_sizes(file: Path) -> None:
    """The documented columns."""
    table = pq.read_table(file).to_pydict()
    assert table["due_us"] == [0, 10, 20]
    assert table["task"] == [1, 2, 1]
    assert table["bytes"] == [len(each.values) for each in ROWS]


def test_a_file_that_is_no_parquet_is_refused(tmp_path: Path) -> None:
    """Such as a program given in the wrong place; also a file that is not there."""
    (tmp_path / "words.py").write_text("print('hello')")
    for name, why in (("words.py", "it is no Parquet file"), ("missing", "No such file or directory")):
        with pytest.raises(LoadFileError, match=why):
            read_description(tmp_path / name)


def test_another_parquet_file_is_refused(tmp_path: Path) -> None:
    """It has no description."""
    pq.write_table(pa.table({"a": [1]}), tmp_path / "a.parquet")
    with pytest.raises(LoadFileError, match="is no captured load"):
        read_description(tmp_path / "a.parquet")


def test_another_format_is_refused(tmp_path: Path) -> None:
    """A later version may mean something else by the same columns."""
    write_load(tmp_path / "load", replace(LOAD, format=FORMAT + 1), ROWS)
    with pytest.raises(LoadFileError, match=rf"has format {FORMAT + 1}, and this version .* reads format {FORMAT}"):
        read_description(tmp_path / "load")


@pytest.mark.parametrize("document", [b"", b"{}", b'{"format": 1}', b"\xff"])
def test_a_damaged_description_is_refused(tmp_path: Path, document: bytes) -> None:
    """The rest of the file may be, too."""
    pq.write_table(pa.table({"a": [1]}).replace_schema_metadata({b"heron.load": document}), tmp_path / "load")
    with pytest.raises(LoadFileError, match="its description is damaged"):
        read_description(tmp_path / "load")


def test_other_columns_are_refused(file: Path) -> None:
    """Somebody has changed the file."""
    table = pq.read_table(file).drop_columns(["tuples"])
    pq.write_table(table, file)
    with pytest.raises(LoadFileError, match="has other columns than a captured load: due_us"):
        read_description(file)


def test_a_damaged_part_is_refused(file: Path) -> None:
    """The description of such a file may still be whole."""
    data = bytearray(file.read_bytes())
    data[4:60] = b"\xff" * 56
    file.write_bytes(data)
    with pytest.raises(LoadFileError, match=r"is damaged|cannot be read"):
        list(read_rows(file, "words", [0, 1]))


def test_a_full_disk_leaves_no_part_and_the_former_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """/dev/full is a disk without room."""
    before = file.read_bytes()
    monkeypatch.setattr(Path, "with_name", lambda _self, _name: Path("/dev/full"))
    monkeypatch.setattr(Path, "unlink", lambda _self, missing_ok: None)
    with pytest.raises(LoadFileError, match=r"load\.parquet: cannot be written: No space left on device"):
        write_load(file, LOAD, ROWS)
    assert file.read_bytes() == before


def test_a_folder_that_is_missing_is_an_error_by_name(tmp_path: Path) -> None:
    """As any other failure of the disk."""
    with pytest.raises(LoadFileError, match="cannot be written: No such file or directory"):
        write_load(tmp_path / "no" / "load", LOAD, ROWS)
