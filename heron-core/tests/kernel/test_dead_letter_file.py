"""The file of dead letters: bounded, private, and letters can be taken out of it."""

from __future__ import annotations

import resource
import signal
import stat
from pathlib import Path

import pytest

from heron.api.dead_letter import DeadLetter
from heron.errors import SerializationError
from heron.instance.replay.pickled_letter import letter_line, letter_row, values_of
from heron.ipc.documents.letter_line import LetterLine
from heron.kernel.dead_letter_file import DeadLetterFile, letter_files


def letter(values: object) -> DeadLetter:
    return DeadLetter(values, "default", ("part", 7), 3, "failed", "check", 4, "ValueError: x", "trace", 1.0, 2.0)


def line(number: int, values: object = None) -> LetterLine:
    return letter_line(letter_row(letter([number] if values is None else values)), f"1-0-{number}", "lines")


def file_in(folder: Path, most_bytes: int = 1 << 20) -> DeadLetterFile:
    return DeadLetterFile.of_task(folder, 1, most_bytes)


def ids_in(file: DeadLetterFile) -> list[str]:
    return [each.id for each in file.letters()]


def test_letters_are_taken_by_their_ids_from_both_parts(tmp_path: Path) -> None:
    """The others stay in their order, and new ones come behind them."""
    size = len(b"x") * 700
    file = file_in(tmp_path, most_bytes=4 * size)
    for number in range(6):
        file.append(line(number))
    assert file.older.exists()
    before = ids_in(file)
    taken = file.take({before[0], before[-1], "1-0-99"})
    assert [each.id for each in taken] == [before[0], before[-1]]
    assert ids_in(file) == before[1:-1]
    file.append(taken[1])
    assert ids_in(file) == before[1:]
    assert file.take({"1-0-99"}) == []
    assert [each.path for each in letter_files(tmp_path)] == [file.path]
    for part in (file.older, file.path):
        assert stat.S_IMODE(part.stat().st_mode) == 0o600


def test_letters_are_replaced_in_their_place(tmp_path: Path) -> None:
    """In both parts, beside lines that are no letters."""
    file = file_in(tmp_path, most_bytes=2800)
    for number in range(6):
        file.append(line(number))
    file.path.write_bytes(file.path.read_bytes() + b"torn")
    before = ids_in(file)
    changed = file.change({before[0]: None, before[1]: line(1, ["other"]), before[-1]: line(5, ["last"])})
    assert [each.id for each in changed] == [before[0], before[1], before[-1]]
    assert ids_in(file) == before[1:]
    shown = {each.id: each.shown for each in file.letters()}
    assert (shown[before[1]], shown[before[-1]]) == (("'other'",), ("'last'",))
    assert file.path.read_bytes().endswith(b"\ntorn\n")


@pytest.mark.parametrize("together", [1, 3, 20])
def test_letters_that_are_appended_together_are_as_if_one_by_one(tmp_path: Path, together: int) -> None:
    """No part exceeds its half, and what leaves the older one is counted."""
    file, alone = file_in(tmp_path, most_bytes=4000), file_in(tmp_path / "alone", most_bytes=4000)
    alone.path.parent.mkdir()
    for start in range(0, 20, together):
        file.append(*(line(number) for number in range(start, min(20, start + together))))
    for number in range(20):
        alone.append(line(number))
    assert file.path.read_bytes() == alone.path.read_bytes()
    assert file.older.read_bytes() == alone.older.read_bytes()
    assert file.dropped == alone.dropped > 0


def test_a_line_that_is_broken_stays(tmp_path: Path) -> None:
    """It may be of a task that was killed while it wrote."""
    file = file_in(tmp_path)
    file.append(line(1))
    with file.path.open("ab") as out:
        out.write(b'{"id": "1-0-2"\n')
    assert len(file.take({"1-0-1"})) == 1
    assert file.path.read_bytes() == b'{"id": "1-0-2"\n'


class Unpicklable:
    """Refuses to be pickled and shown."""

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError

    def __repr__(self) -> str:
        raise ValueError


def test_values_that_cannot_be_pickled_are_shown_and_cannot_be_emitted_again() -> None:
    """A letter is written nevertheless."""
    made = line(1, [Unpicklable(), "x" * 1000, "\ud800"])
    assert made.shown[0].startswith("<Unpicklable instance at ")
    assert len(made.shown[1]) == 200
    with pytest.raises(SerializationError, match="dead letter 1-0-1: its values have no pickle"):
        values_of(made)


def test_values_come_back_as_they_were() -> None:
    """Nested ones too."""
    values = [1, "text", {"a": (b"x", None)}]
    assert values_of(line(1, values)) == values


def test_a_pickle_that_does_not_load_is_named() -> None:
    """Its class may be gone since."""
    broken = LetterLine("1-0-1", "lines", "default", (), "1", 3, "failed", payload=b"\x80\x05.")
    with pytest.raises(SerializationError, match="dead letter 1-0-1: its values do not load: UnpicklingError"):
        values_of(broken)


def test_a_letter_behind_a_torn_line_is_whole(tmp_path: Path) -> None:
    """The process died while it wrote; the next letter begins its own line."""
    file = file_in(tmp_path)
    file.append(line(1))
    with file.path.open("ab") as out:
        out.write(b'{"id": "1-0-2"')
    file.append(line(3))
    assert ids_in(file) == ["1-0-1", "1-0-3"]


def test_a_full_disk_leaves_no_part_of_a_line(tmp_path: Path) -> None:
    """The letter is reported as lost, and later ones are not merged with its beginning."""
    file = file_in(tmp_path)
    file.append(line(1))
    whole = file.path.stat().st_size
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    former = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (whole + 100, before[1]))
    try:
        with pytest.raises(OSError, match="File too large"):
            file.append(line(2))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, former)
    assert file.path.stat().st_size == whole
    file.append(line(3))
    assert ids_in(file) == ["1-0-1", "1-0-3"]


def test_a_file_that_others_can_write_is_refused(tmp_path: Path) -> None:
    """Its pickles are loaded, so it could run code of theirs."""
    file = file_in(tmp_path)
    file.append(line(1))
    file.path.chmod(0o620)
    with pytest.raises(PermissionError, match=r"its mode is 0620; `chmod 600 "):
        file.take({"1-0-1"})
    assert ids_in(file) == ["1-0-1"]


def test_a_letter_stays_if_one_part_cannot_be_changed(tmp_path: Path) -> None:
    """Either all are taken or none: a letter that was taken would be emitted again by the next command."""
    file = file_in(tmp_path, most_bytes=2800)
    for number in range(6):
        file.append(line(number))
    before = ids_in(file)
    (tmp_path / f"{file.path.name}.tmp").mkdir()
    with pytest.raises(OSError, match="Is a directory"):
        file.take({before[0], before[-1]})
    assert ids_in(file) == before


def test_letters_of_a_checkpoint_are_written_once(tmp_path: Path) -> None:
    """The file knows the newest checkpoint also when its letters were taken since, and in a part that is older."""
    file = file_in(tmp_path, most_bytes=4000)
    assert file.append_once([line(1), line(2)], 4, search=False) == 2
    assert file.append_once([line(1), line(2), line(3)], 5, search=True) == 1
    assert ids_in(file) == ["1-0-1", "1-0-2", "1-0-3"]
    file.take({"1-0-3"})
    assert file.last_checkpoint() == 5
    file.part_bytes = 700
    file.append(line(4))
    file.append(line(5))
    assert file.older.exists()
    assert DeadLetterFile(file.path, 0).last_checkpoint() == 5
    assert file.dropped == 0
