"""Why rows failed, as their spouts learn it."""

from __future__ import annotations

import struct
import traceback
from collections.abc import Sequence

import pytest

from heron.instance.acks.batch_arrays import BatchAcks
from heron.instance.acks.failed_rows import FailedRows
from heron.instance.acks.tracked_batch import TrackedBatch
from heron.instance.replay.failure_cause import FailureCause, decode_cause, encode_cause
from heron.instance.user.failure_places import FailurePlace, FailurePlaces
from heron.ipc.frames.frame import SegmentKind, parse_segment
from heron.ipc.frames.tracking import COUNTER_BITS, MAX_CAUSE_BYTES, NO_CAUSE, cause_lines, parse_cause
from heron.ipc.frames.tracking_arrays import parse_fail

SPOUT, BOLT = 2, 5


class BadTextError(Exception):
    """Cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError


def batch(rows: int = 4, tuples: int | None = None, base: int = 100) -> TrackedBatch:
    made = TrackedBatch(BOLT, rows, 77, tuples)
    made.root_base = (SPOUT << COUNTER_BITS) | base
    return made


def blame(rows: FailedRows, batch: TrackedBatch, places: Sequence[int], error: Exception) -> None:
    for place in places:
        rows.blame(batch, place, "process", error, rows.places.of("process", error))


def told(rows: FailedRows, *failed: tuple[TrackedBatch, list[int]]) -> list[tuple[int, int, FailureCause]]:
    """The task, the counter and the cause of each root of these failed rows; each also fails, behind its cause."""
    found, fails = [], []
    for data in BatchAcks().fail_segments(list(failed), rows.take(failed)):
        head = parse_segment(data, 0)
        (task,) = head.destinations
        if head.kind == SegmentKind.FAIL:
            fails += [(task, counter) for counter in parse_fail(data, head)]
            continue
        assert task not in dict(fails)
        counters, causes = parse_cause(data, head)
        found += [(task, each, decode_cause(why)) for each, why in zip(counters, causes, strict=True)]
    found.sort(key=lambda each: each[:2])
    assert fails == [each[:2] for each in found]
    return found


def test_each_row_has_its_error_and_the_others_are_failed_by_the_component() -> None:
    """Whatever batch they are in."""
    rows, first, second = FailedRows("check", BOLT, FailurePlaces()), batch(), batch(base=200)
    blame(rows, first, (1,), ValueError("poison"))
    blame(rows, second, (0, 3), KeyError("k"))
    found = told(rows, (first, [1, 2]), (second, [0, 1, 3]))
    assert [(task, counter, cause.error) for task, counter, cause in found] == [
        (SPOUT, 101, "ValueError: poison"),
        (SPOUT, 102, ""),
        (SPOUT, 200, "KeyError: 'k'"),
        (SPOUT, 201, ""),
        (SPOUT, 203, "KeyError: 'k'"),
    ]
    plain = found[1][2]
    assert (plain.component, plain.task_id, plain.doing, plain.trace) == ("check", BOLT, "fail", "")
    ((_, _, again),) = told(rows, (first, [1]))
    assert again.error == "", "an error is told once"


def test_a_document_is_sent_once_also_if_other_rows_are_between() -> None:
    """Records with two faults, for example, alternate as they like."""
    rows, failed = FailedRows("check", BOLT, FailurePlaces()), batch(100)
    blame(rows, failed, range(0, 100, 2), ValueError("x"))
    blame(rows, failed, range(1, 100, 2), KeyError("y"))
    all_rows = [(failed, [*range(100)])]
    cause, _ = BatchAcks().fail_segments(all_rows, rows.take(all_rows))
    head = parse_segment(cause, 0)
    counters, _ = parse_cause(cause, head)
    assert counters == [*range(101, 200, 2), *range(100, 200, 2)]
    lines = cause_lines(cause, head)
    assert [place for place, line in enumerate(lines) if line.startswith(b"{")] == [0, 50]
    assert {*lines[1:50], *lines[51:]} == {b""}, "an equal message is sent once too"


def test_a_row_without_a_root_does_not_give_its_cause_to_one_with_several() -> None:
    """There are as many roots as failed rows then."""
    rows, joined = FailedRows("check", BOLT, FailurePlaces()), TrackedBatch(BOLT, 2, 77)
    joined.roots = memoryview(struct.pack("<2Q", (SPOUT << COUNTER_BITS) | 100, (SPOUT << COUNTER_BITS) | 101))
    joined.root_rows = memoryview(struct.pack("<2q", 1, 1))
    blame(rows, joined, (0,), ValueError("of the row without a root"))
    blame(rows, joined, (1,), ValueError("of the row with two"))
    assert [why.error for _, _, why in told(rows, (joined, [0, 1]))] == ["ValueError: of the row with two"] * 2


def test_the_first_error_of_a_row_counts() -> None:
    """A row of a batch that cannot be decoded has failed before the component fails the others."""
    rows, first = FailedRows("check", BOLT, FailurePlaces()), batch()
    blame(rows, first, (1,), ValueError("cannot be decoded"))
    rows.blame_all(first, "process_columns", KeyError("k"), FailurePlace())
    blame(rows, first, (2,), ValueError("too late"))
    assert [why.error for _, _, why in told(rows, (first, [0, 1, 2]))] == [
        "KeyError: 'k'",
        "ValueError: cannot be decoded",
        "KeyError: 'k'",
    ]


def test_an_exception_may_answer_for_every_attribute() -> None:
    """Python asks it for its notes."""

    class InfoError(Exception):
        def __getattr__(self, name: str) -> str:
            return dict[str, str]()[name]

    rows, first = FailedRows("check", BOLT, FailurePlaces()), batch()
    blame(rows, first, (0,), InfoError("text"))
    assert [why.error for _, _, why in told(rows, (first, [0]))] == ["InfoError: text"]


def poisoned(text: str, *, context: bool = False) -> Exception:
    """An exception that was raised on one line."""
    try:
        try:
            raise KeyError(text)
        except KeyError as error:
            raise ValueError(text if not context else "same") from (error if context else None)
    except ValueError as error:
        error.__context__ = error.__cause__
        return error


def test_rows_from_one_line_have_their_own_message_and_the_cause_behind_it() -> None:
    """All of them are in one segment."""
    rows, first = FailedRows("check", BOLT, FailurePlaces()), batch(rows=6)
    for place, error in enumerate(
        [poisoned("a"), poisoned("a"), poisoned("b"), poisoned("c", context=True), poisoned("d", context=True)]
    ):
        blame(rows, first, (place,), error)
    found = told(rows, (first, [0, 1, 2, 3, 4]))
    assert [cause.error[12:] for _, _, cause in found] == ["a", "a", "b", "same", "same"]
    assert ["KeyError: 'd'" in cause.trace for _, _, cause in found] == [False] * 4 + [True]


@pytest.mark.parametrize("text", ["second", "two\nlines", "", "x" * 1500, "first", "\x00", "\x01" * 900])
def test_each_row_has_its_own_message_and_the_traceback_that_python_prints(text: str) -> None:
    """The lines of the traceback are formatted once, because that takes longer than the rest."""
    rows, first = FailedRows("check", BOLT, FailurePlaces()), batch()
    errors = [poisoned("first"), poisoned(text)]
    for place, error in enumerate(errors):
        blame(rows, first, (place,), error)
    found = {counter: cause for _, counter, cause in told(rows, (first, [0, 1]))}
    for place, error in enumerate(errors):
        cause = found[100 + place]
        assert cause.trace == "".join(traceback.format_exception(error))
        assert cause.error == f"ValueError: {error}"[:1000]


def test_a_note_of_an_exception_is_in_its_traceback() -> None:
    """It is no part of the message, and may differ."""
    rows, first = FailedRows("check", BOLT, FailurePlaces()), batch()
    for place in range(2):
        error = poisoned("a")
        error.add_note(f"in row {place}")
        blame(rows, first, (place,), error)
    assert sorted(cause.trace[-9:] for _, _, cause in told(rows, (first, [0, 1]))) == ["in row 0\n", "in row 1\n"]


def test_the_tuples_of_a_unit_have_one_root() -> None:
    """A batch of columns with one id."""
    rows, unit = FailedRows("check", BOLT, FailurePlaces()), batch(rows=1, tuples=3)
    blame(rows, unit, (2,), ValueError("poison"))
    ((_, counter, cause),) = told(rows, (unit, [0]))
    assert (counter, cause.error) == (100, "ValueError: poison")


def test_causes_are_divided_among_segments_of_bounded_size_and_tasks() -> None:
    """Roots of several tasks may fail together, each of them with a long text."""
    rows, first, second = FailedRows("check", BOLT, FailurePlaces()), batch(rows=400), batch()
    second.root_base = (SPOUT + 1) << COUNTER_BITS
    for place in range(400):
        blame(rows, first, (place,), poisoned(f"{place} {'x' * 500}"))
    blame(rows, second, (1,), poisoned("other"))
    failed = [(first, [*range(400)]), (second, [1])]
    assert [(task, counter, cause.error.split()[1]) for task, counter, cause in told(rows, *failed)] == [
        *((SPOUT, 100 + place, str(place)) for place in range(400)),
        (SPOUT + 1, 1, "other"),
    ]


def test_a_message_that_is_no_valid_text_is_told_escaped() -> None:
    """JSON has no lone surrogates."""
    rows, first = FailedRows("check", BOLT, FailurePlaces()), batch()
    for place, text in enumerate(["a", "\ud800"]):
        blame(rows, first, (place,), poisoned(text))
    assert [cause.error for _, _, cause in told(rows, (first, [0, 1]))] == ["ValueError: a", "ValueError: \\ud800"]


def test_an_error_that_cannot_be_shown_and_one_that_is_large_are_told_within_the_limit() -> None:
    """The author's exception may do anything."""
    bad = FailureCause.of("check", BOLT, "process", BadTextError())
    assert bad.error == "BadTextError: <no message: its __str__ raised RuntimeError>"
    for text in ("\x01" * 100_000, "\U0001f600" * 100_000, "\ud800" * 100_000):
        cause = encode_cause(FailureCause.of("check", BOLT, "process", ValueError(text)))
        assert len(cause[0]) <= MAX_CAUSE_BYTES
        assert decode_cause(cause).error.startswith("ValueError: ")


def test_a_cause_that_cannot_be_read_says_so() -> None:
    """The letter is worth more than its cause."""
    assert decode_cause(NO_CAUSE) == FailureCause("", 0)
    document = b'{"component":"check","task_id":5}'
    deep = b'{"component":"check","task_id":5,"x":' + b"[" * 15_000
    for cause in (
        (b"{", b""),
        (b"", b'"text"'),
        (document, b'"te'),
        (document, b'"\xff"'),
        (b'{"component":"\xff","task_id":5}', b""),
        (deep, b""),
    ):
        assert decode_cause(cause).error.startswith("the cause cannot be read: ")
