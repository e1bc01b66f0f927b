"""Text files as a source and as a sink."""

from __future__ import annotations

from pathlib import Path

from heron_streamlet import StageContext, TextFiles, TextFolder


def test_files_are_read_from_any_position(tmp_path: Path) -> None:
    """A position is the offset of a line, whatever its characters are."""
    (tmp_path / "b.txt").write_bytes("größer\r\n\nlast".encode() + b"\xff")
    (tmp_path / "a.txt").write_bytes(b"")
    source = TextFiles(tmp_path / "*.txt")
    empty, full = source.partitions(3)
    context = StageContext("files")
    reader = source.open(empty, None, context)
    assert reader.read(10) is None
    reader.close()
    reader = source.open(full, None, context)
    assert reader.read(1) == ["größer"]
    position = reader.position
    reader.close()
    reader = source.open(full, position, context)
    assert reader.read(10) == ["", "last\ufffd"]
    assert reader.read(10) is None
    reader.close()


def test_a_text_folder_shows_what_is_committed(tmp_path: Path) -> None:
    """A restore commits what belongs to the checkpoint and discards what is newer."""
    sink = TextFolder(tmp_path)
    sink.setup(StageContext("out", 1, 2))
    sink.put("one")
    sink.prepare(1)
    sink.put("two")
    sink.prepare(2)
    sink.put("three")
    assert list(tmp_path.glob("*.txt")) == []
    sink.commit(1)
    sink.commit(1)
    again = TextFolder(tmp_path)
    again.setup(StageContext("out", 1, 2))
    again.restore(1)
    again.put("zwei")
    again.prepare(2)
    again.commit(2)
    again.close()
    assert [path.read_text(encoding="utf-8") for path in sorted(tmp_path.glob("*.txt"))] == ["one\n", "zwei\n"]
    sink.close()


def test_a_text_folder_has_several_sinks(tmp_path: Path) -> None:
    """A name that begins with that of another task, or has a special character of patterns."""
    one, other, odd = TextFolder(tmp_path), TextFolder(tmp_path), TextFolder(tmp_path)
    for sink, name, partition in ((one, "out", 1), (other, "out-1", 0), (odd, "[a]", 0)):
        sink.setup(StageContext(name, partition, 2))
        sink.put(name)
        sink.prepare(1)
    one.restore(0)
    for sink in (other, odd):
        sink.commit(1)
    assert sorted(path.read_text(encoding="utf-8") for path in tmp_path.glob("*.txt")) == ["[a]\n", "out-1\n"]
