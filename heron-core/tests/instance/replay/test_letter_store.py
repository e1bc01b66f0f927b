"""The letters of steps in the file of a task: kept, counted, dropped, and never emitted again."""

from __future__ import annotations

import resource
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from heron.api import DeadLetter, FailedRecordError
from heron.errors import HeronError
from heron.instance.replay.letter_store import StoredLetters, TaskName
from heron.instance.replay.pickled_letter import letter_line, letter_row
from heron.instance.user.user_errors import UserErrors, named_values
from heron.kernel.dead_letter_file import DeadLetterFile


def of_step(value: object, step: str = "map-1", number: int = 1) -> DeadLetter:
    return DeadLetter([value], "", "partition 'a'", 1, "failed", "", 0, "ValueError: no", "", 5.0, 5.0, step, number)


def file_of(folder: Path) -> DeadLetterFile:
    return DeadLetterFile.of_task(folder, 3, 1 << 20)


def named(component: str, stream: str, values: Sequence[object]) -> object:
    fields = {("lines", "default"): ("line",), ("web", "logins"): ("name", "password")}[component, stream]
    return named_values(fields, values)


def store_in(folder: Path, incarnation: int = 2) -> StoredLetters:
    def fail(doing: str, error: BaseException, instead: str, record: object) -> None:
        raise AssertionError(doing, instead, record) from error

    return StoredLetters(file_of(folder), TaskName("stage", 3, incarnation), fail, named)


def test_letters_of_steps_have_ids_of_their_own_and_are_counted_by_step(tmp_path: Path) -> None:
    """Beside those of a spout with replays in the same file, and of an earlier process of the task."""
    store, earlier = store_in(tmp_path), store_in(tmp_path, 1)
    earlier.add_of_step(of_step(0))
    store.add({"3-2-1": letter_row(of_step(1))})
    for value, step in ((1, "map-1"), (2, "map-1"), (3, "map-2")):
        store.add_of_step(of_step(value, step))
    lines = list(file_of(tmp_path).letters())
    assert [each.id for each in lines] == ["3-1-s1", "3-2-1", "3-2-s1", "3-2-s2", "3-2-s3"]
    assert (lines[-1].step, lines[-1].step_number, lines[-1].spout, lines[-1].shown) == ("map-2", 1, "stage", ("3",))
    assert lines[-1].tup_id == "\"partition 'a'\""
    assert {each.labels["step"]: each.value for each in store.metrics()} == {"map-1": 2, "map-2": 1}


def test_a_letter_of_a_step_is_dropped_and_not_emitted(tmp_path: Path) -> None:
    """The refusal names the step; the letter stays."""
    store = store_in(tmp_path)
    store.add_of_step(of_step(1))
    store.add_of_step(of_step(2))
    found = store.take_of_steps(["3-2-s1", "3-2-s9"], drop=False)
    assert list(found) == ["3-2-s1"]
    assert "dead letter 3-2-s1 is of the step 'map-1', which cannot get it again" in found["3-2-s1"]
    assert store.take_of_steps(["3-2-s1", "3-2-s9"], drop=True) == {"3-2-s1": ""}
    assert [each.id for each in file_of(tmp_path).letters()] == ["3-2-s2"]


def test_a_task_without_letters_refuses(tmp_path: Path) -> None:
    """The refusal says what makes letters."""
    with pytest.raises(HeronError, match=r"no dead letters, because topology\.replay\.attempts.*on_error"):
        store_in(tmp_path).take_of_steps(["3-2-s1"], drop=True)


def test_a_letter_of_a_spout_whose_replays_were_switched_off_stays(tmp_path: Path) -> None:
    """It can be dropped."""
    spout = DeadLetter([1], "default", "id", 3, "failed", "check", 4, "ValueError: no", "", 5.0, 5.0)
    store = store_in(tmp_path)
    file_of(tmp_path).append(letter_line(letter_row(spout), "3-0-1", "stage"))
    assert store.take_of_steps(["3-0-1"], drop=False) == {"3-0-1": "its spout has no topology.replay.attempts any more"}
    assert store.take_of_steps(["3-0-1"], drop=True) == {"3-0-1": ""}


@contextmanager
def files_of_at_most(size_bytes: int) -> Iterator[None]:
    """A write beyond this size fails, as on a disk that is full."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    former = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size_bytes, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, former)


def test_exactly_the_letters_that_are_not_written_are_reported(tmp_path: Path) -> None:
    """The first letter is in a part of the file that was written before the disk was full."""
    lost: list[object] = []
    file = DeadLetterFile.of_task(tmp_path, 3, 20_000)
    store = StoredLetters(file, TaskName("lines", 3, 2), lambda *told: lost.append(told[3]), named)
    values = {"3-2-1": ["a"], "3-2-2": ["b" * 7200], "3-2-3": ["c"]}
    letters = {
        number: letter_row(replace(of_step(0), values=each, stream="default", step=""))
        for number, each in values.items()
    }
    with files_of_at_most(5000):
        store.add(letters)
    assert lost == [{"line": "b" * 7200}, {"line": "c"}]
    assert [each.id for each in file.letters()] == ["3-2-1"]


@pytest.mark.parametrize("shown", [False, True])
def test_a_letter_that_is_not_written_is_reported_without_secrets(
    tmp_path: Path, shown: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """Also with `topology.inspect.tuples`."""
    errors, file = UserErrors("site", "web", 3), DeadLetterFile.of_task(tmp_path, 3, 20_000)
    errors.shows_values = lambda: shown
    store = StoredLetters(file, TaskName("web", 3, 2), errors.report, named)
    with files_of_at_most(0):
        store.add({"3-2-1": letter_row(replace(of_step(0), values=["ada", "hunter2"], stream="logins", step=""))})
    record = "{'name': 'ada', 'password': (hidden)}" if shown else "(hidden)"
    assert f"writing a dead letter with {record} raised" in errors.last
    assert "hunter2" not in capsys.readouterr().err


def test_letters_that_cannot_be_changed_stay_and_are_reported(tmp_path: Path) -> None:
    """All of them: a file is replaced as a whole."""
    told: list[str] = []
    file = DeadLetterFile.of_task(tmp_path, 3, 20_000)
    store = StoredLetters(file, TaskName("lines", 3, 2), lambda doing, *_: told.append(doing), named)
    store.add({"3-2-1": letter_row(of_step("a")), "3-2-2": letter_row(of_step("b"))})
    before = list(file.letters())
    with files_of_at_most(0):
        assert not store.change({"3-2-1": None, "3-2-2": letter_row(of_step("c"))})
    assert told == ["changing dead letters"]
    assert store.find(["3-2-1", "3-2-2", "3-2-3"]) == before
    assert store.change({"3-2-1": None, "3-2-2": letter_row(of_step("c"))})
    assert [(each.id, each.shown) for each in file.letters()] == [("3-2-2", ("'c'",))]
    file.path.chmod(0o622)
    with pytest.raises(PermissionError, match="others can write it"):
        store.find(["3-2-2"])


def test_a_reported_error_hands_over_its_letters() -> None:
    """Each time, although the error is shown once; the engine says where it was."""
    errors, kept = UserErrors("words", "count", 5), list[DeadLetter]()
    errors.add_letter = kept.append
    for value in (1, 2):
        error = FailedRecordError("no")
        error.letters = (of_step(value),)
        errors.report("process", error, "the task continues")
    errors.report("process", ValueError("no"), "the task continues")
    assert [(each.values, each.component, each.task_id) for each in kept] == [([1], "count", 5), ([2], "count", 5)]


@pytest.mark.parametrize("default", [False, True])
def test_an_error_with_a_rule_decides_whether_its_task_ends(default: bool) -> None:
    """Without one, and for all other errors, the topology does."""
    error = FailedRecordError("no")
    assert FailedRecordError.ends_task(error, default) is default
    assert FailedRecordError.ends_task(ValueError("no"), default) is default
    for stops in (False, True):
        error.stops = stops
        assert FailedRecordError.ends_task(error, default) is stops


def test_a_row_of_a_letter_is_a_tuple_of_the_stream_of_dead_letters() -> None:
    """A bolt makes a `DeadLetter` of it."""
    letter = DeadLetter([1], "default", "id", 3, "failed", "check", 4, "ValueError: no", "", 5.0, 6.0)
    assert DeadLetter(*letter_row(letter)) == letter
