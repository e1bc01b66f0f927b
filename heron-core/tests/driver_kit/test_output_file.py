"""The size of a child's output file is bounded."""

from __future__ import annotations

import os
from pathlib import Path

from heron.driver_kit.log import truncate_when_full


def test_a_full_file_is_copied_and_truncated_while_its_writer_continues(tmp_path: Path) -> None:
    """The child appends to the file with the same descriptor."""
    output = tmp_path / "words-1.out"
    with open(output, "ab", buffering=0, opener=lambda path, flags: os.open(path, flags, 0o600)) as child:
        for number in range(4):
            child.write(b"%d" % number * 10)
            assert truncate_when_full(output, 10)
            assert not truncate_when_full(output, 10)
        child.write(b"last")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {
        "words-1.out": b"last",
        "words-1.out.1": b"3" * 10,
        "words-1.out.2": b"2" * 10,
    }
    assert {path.stat().st_mode & 0o777 for path in tmp_path.iterdir()} == {0o600}


def test_a_missing_or_small_file_does_not_change(tmp_path: Path) -> None:
    """A missing file is not an error: the child may not have started, or a person removed the file."""
    output = tmp_path / "words-1.out"
    assert not truncate_when_full(output, 10)
    output.write_bytes(b"123456789")
    assert not truncate_when_full(output, 10)
    assert output.read_bytes() == b"123456789"
