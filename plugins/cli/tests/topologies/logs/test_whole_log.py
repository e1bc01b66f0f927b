"""A log with its older parts, as it is downloaded."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import pytest

from heron.errors import UsageError
from heron_cli.topologies.logs.whole_log import WholeLog, whole_log, whole_logs


def test_a_log_is_whole_with_its_older_parts_in_order(tmp_path: Path) -> None:
    """Byte for byte: a person compares it with the files, and it may be no text."""
    for name, text in (("count-3.out.2", b"one\n"), ("count-3.out.1", b"t\xffo\n"), ("count-3.out", b"three")):
        (tmp_path / name).write_bytes(text)
    (tmp_path / "count-3.err").write_bytes(b"")
    (tmp_path / "stmgr-1.log").write_bytes(b"{}\n")
    found = whole_log(tmp_path, "count-3.out")
    assert (found.size_bytes, b"".join(found.chunks())) == (13, b"one\nt\xffo\nthree")
    assert [(each.name, each.size_bytes) for each in whole_logs(tmp_path, 3)] == [
        ("count-3.err", 0),
        ("count-3.out", 13),
    ]
    assert [each.name for each in whole_logs(tmp_path, process="stmgr-1")] == ["stmgr-1.log"]
    assert list(whole_log(tmp_path, "count-3.err").chunks()) == []


@pytest.mark.parametrize("name", ["", "count-3.out.1", "../count-3.out", "count-4.out", "/etc/passwd", "notes.txt"])
def test_only_a_log_of_the_folder_is_read(tmp_path: Path, name: str) -> None:
    """A name comes from a request."""
    for each in ("count-3.out", "count-3.out.1", "notes.txt"):
        (tmp_path / each).write_text("x", encoding="utf-8")
    with pytest.raises(UsageError, match=r"there is no log .*; there are 'count-3\.out'"):
        whole_log(tmp_path, name)


def test_a_log_that_grows_and_is_rotated_meanwhile_ends_where_it_ended_at_the_beginning(tmp_path: Path) -> None:
    """A process may write faster than a person downloads; what was there is complete, and once."""
    path = tmp_path / "count-3.out"
    path.write_bytes(b"a" * 100_000)
    chunks = WholeLog(path.name, 0, path).chunks()
    first = next(chunks)
    path.rename(path.with_name("count-3.out.1"))
    path.write_bytes(b"b" * 100_000)
    assert first + b"".join(chunks) == b"a" * 100_000


def test_a_part_that_is_removed_unread_is_named(tmp_path: Path) -> None:
    """A log with a silent gap would be read as complete."""
    path = tmp_path / "count-3.out"
    for number in (2, 1):
        path.with_name(f"{path.name}.{number}").write_bytes(str(number).encode() * 70_000)
    path.write_bytes(b"0" * 70_000)
    chunks = WholeLog(path.name, 0, path).chunks()
    next(chunks)
    for name in (f"{path.name}.2", f"{path.name}.1", path.name):
        path.with_name(name).unlink()
    for name in (f"{path.name}.2", f"{path.name}.1", path.name):
        path.with_name(name).write_bytes(b"n" * 10)
    assert b"heron: a part is left out: it was removed before it was read" in b"".join(chunks)


def test_the_size_of_a_log_needs_no_memory(tmp_path: Path) -> None:
    """A process keeps 30 MiB of each log, and several people may download one."""
    path = tmp_path / "count-3.out"
    with path.open("wb") as stream:
        stream.truncate(20 << 20)
    tracemalloc.start()
    try:
        assert sum(map(len, whole_log(tmp_path, path.name).chunks())) == 20 << 20
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 1 << 20
