"""Dead letters are read from the files of a run, and shown."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from heron.errors import UsageError
from heron.ipc.documents.letter_line import LetterLine
from heron_cli.topologies.logs.dead_letters import chosen_letters, drop_stored, letters_by_task, stored_letters
from heron_cli.view.dead_letter_text import letter_fields, letter_lines, letters_lines


def letter(number: int, failed_s: float = 0.0, **changes: object) -> LetterLine:
    made = LetterLine(f"1-0-{number}", "lines", "default", (str(number), "'x'"), f"'id-{number}'", 3, "failed")
    found = {"component": "check", "task_id": 4, "error": "ValueError: poison", "trace": "Traceback\n  line"}
    return msgspec.structs.replace(made, failed_s=failed_s, emitted_s=1.0, **{**found, **changes})


def write(path: Path, *letters: LetterLine, rest: bytes = b"") -> None:
    path.write_bytes(b"".join(msgspec.json.encode(each) + b"\n" for each in letters) + rest)


def test_letters_of_all_tasks_and_both_parts_are_read_by_time(tmp_path: Path) -> None:
    """A line that a killed task has not finished, and other files of the folder, are skipped."""
    write(tmp_path / "dead-letters-1.jsonl.1", letter(1, 10.0))
    write(tmp_path / "dead-letters-1.jsonl", letter(2, 30.0), rest=b'{"id": "1-0-3", "spo')
    write(tmp_path / "dead-letters-2.jsonl", letter(4, 20.0))
    (tmp_path / "lines-1.out").write_text("not a letter")
    assert [each.id for each in stored_letters(tmp_path)] == ["1-0-1", "1-0-4", "1-0-2"]


def test_an_id_that_is_not_there_is_refused(tmp_path: Path) -> None:
    """The nearest one is named."""
    write(tmp_path / "dead-letters-1.jsonl", letter(1), letter(2))
    letters = stored_letters(tmp_path)
    assert [each.id for each in chosen_letters(letters, ["1-0-2", "1-0-1"])] == ["1-0-2", "1-0-1"]
    with pytest.raises(UsageError, match=r"no dead letter '1-0-22' \(nearest: '1-0-2'\)"):
        chosen_letters(letters, ["1-0-22"])
    with pytest.raises(UsageError, match="no dead letter 'x'"):
        chosen_letters((), ["x"])


def test_a_file_of_another_user_is_named(tmp_path: Path) -> None:
    """Only the owner can read it."""
    (tmp_path / "dead-letters-1.jsonl").mkdir()
    with pytest.raises(UsageError, match=r"dead-letters-1\.jsonl cannot be read: .*ask the owner"):
        stored_letters(tmp_path)


def test_a_letter_belongs_to_the_task_in_whose_file_it_is(tmp_path: Path) -> None:
    """An update may have given it to another task; a file that only looks like one is no file of a task."""
    write(tmp_path / "dead-letters-7.jsonl", letter(1, payload=b"pickle"))
    (tmp_path / "dead-letters-x.jsonl").write_text("{}")
    assert {task: [each.id for each in of_task] for task, of_task in letters_by_task(tmp_path).items()} == {
        7: ["1-0-1"]
    }
    assert letters_by_task(tmp_path)[7][0].payload == b"", "commands never need the pickle"


def test_a_letter_that_two_files_have_is_listed_once(tmp_path: Path) -> None:
    """Such as after a move to another machine and back."""
    for task in (1, 7):
        write(tmp_path / f"dead-letters-{task}.jsonl", letter(1))
    assert len(stored_letters(tmp_path)) == 1


def test_a_damaged_file_shows_what_is_whole(tmp_path: Path) -> None:
    """Zeros of a crash, other text, and an id that names no task."""
    rest = b"\0" * 50 + b"\n" + b"\xff\xfe\n[]\n" + msgspec.json.encode(letter(2)).replace(b"1-0-2", b"x-0-2") + b"\n"
    write(tmp_path / "dead-letters-1.jsonl", letter(1), rest=rest)
    assert [each.id for each in stored_letters(tmp_path)] == ["1-0-1"]


def test_letters_of_a_task_that_has_left_can_be_dropped(tmp_path: Path) -> None:
    """No process has the file open."""
    write(tmp_path / "dead-letters-1.jsonl", letter(1), letter(2))
    assert drop_stored(tmp_path, ["1-0-2", "1-0-9"]) == {"1-0-2": ""}
    assert [each.id for each in stored_letters(tmp_path)] == ["1-0-1"]


def test_the_list_has_a_line_for_each_letter() -> None:
    """Without an exception, the reason is said in words; long texts are cut."""
    letters = [
        letter(1, 90.0),
        letter(2, 95.0, error=""),
        letter(3, 99.0, outcome="expired", component="", error="", shown=("y" * 100,)),
    ]
    head, *lines = letters_lines(letters, 100.0)
    assert head.split() == ["id", "age", "from", "failed", "in", "times", "error", "values"]
    assert "check/4" in lines[0]
    assert "ValueError: poison  1, 'x'" in lines[0]
    assert "fail() was called" in lines[1]
    assert "its tree expired" in lines[2]
    assert lines[2].endswith("y…")


def test_one_letter_is_shown_with_its_traceback() -> None:
    """Its values have all their characters."""
    text = "\n".join(letter_lines(letter(1, 90.0, shown=("z" * 150,)), 100.0))
    for part in (
        "dead letter 1-0-1 of lines, stream default",
        "z" * 150,
        "3 times, last 10 s ago in check/4",
        "  line",
    ):
        assert part in text
    expired = letter(1, outcome="expired", component="", error="", trace="")
    assert "its tree was not complete in time" in "\n".join(letter_lines(expired, 100.0))


def test_a_letter_of_a_step_names_the_step() -> None:
    """With its element, and where that was in the source."""
    line = letter(1, 90.0, step="divide", step_number=4, shown=("7",), tup_id="partition '0'", failures=1)
    text = "\n".join(letter_lines(line, 100.0))
    for each in (
        "dead letter 1-0-1 of lines, step divide (number 4)",
        "  element   7",
        "  origin    partition '0'",
        "failed    1 time, last 10 s ago in check/4",
    ):
        assert each in text, text
    assert "check/4 divide" in "\n".join(letters_lines([line], 100.0))
    assert (letter_fields(line)["step"], letter_fields(line)["step_number"]) == ("divide", 4)


def test_json_has_no_pickle() -> None:
    """Programs read the text of the values."""
    fields = letter_fields(letter(1, payload=b"pickle"))
    assert "payload" not in fields
    assert fields["values"] == ("1", "'x'")
