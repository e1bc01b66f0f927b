"""Why rows failed, as their spouts learn it."""

from __future__ import annotations

import traceback

import pytest

from heron.instance.acks.batch_arrays import BatchAcks
from heron.instance.acks.failed_rows import FailedRows
from heron.instance.acks.tracked_batch import TrackedBatch
from heron.instance.replay.failure_cause import FailureCause, decode_cause, encode_cause
from heron.ipc.frames.frame import parse_segment
from heron.ipc.frames.tracking import COUNTER_BITS, MAX_CAUSE_BYTES, parse_cause

SPOUT, BOLT = 2, 5


class BadTextError(Exception):
    """Cannot be shown."""

    def __str__(self) -> str:
        raise RuntimeError


def batch(rows: int = 4, tuples: int | None = None, base: int = 100) -> TrackedBatch:
    made = TrackedBatch(BOLT, rows, 77, tuples)
    made.root_base = (SPOUT << COUNTER_BITS) | base
    return made


def told(rows: FailedRows, *failed: tuple[TrackedBatch, list[int]]) -> list[tuple[int, list[int], FailureCause]]:
    """The task of the roots, their counters and the cause of each segment for these failed rows."""
    found = []
    by_cause = rows.take(failed).items()
    for data in [each for cause, of_cause in by_cause for each in BatchAcks().cause_segments(of_cause, cause)]:
        head = parse_segment(data, 0)
        counters, document = parse_cause(data, head)
        found.append((head.destinations[0], counters, decode_cause(document)))
    return found


def test_each_row_has_its_error_and_the_others_are_failed_by_the_component() -> None:
    """One segment for each cause."""
    rows, first, second = FailedRows("check", BOLT), batch(), batch(base=200)
    rows.blame(first, (1,), "process", ValueError("poison"))
    rows.blame(second, (0, 3), "process_columns", KeyError("k"))
    by_error = {each[2].error: each for each in told(rows, (first, [1, 2]), (second, [0, 1, 3]))}
    assert {error: (task, counters) for error, (task, counters, _) in by_error.items()} == {
        "ValueError: poison": (SPOUT, [101]),
        "KeyError: 'k'": (SPOUT, [200, 203]),
        "": (SPOUT, [102, 201]),
    }
    plain = by_error[""][2]
    assert (plain.component, plain.task_id, plain.doing, plain.trace) == ("check", BOLT, "fail", "")
    ((_, _, again),) = told(rows, (first, [1]))
    assert again.error == "", "an error is told once"


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


def test_rows_with_one_message_from_one_line_share_a_segment() -> None:
    """Other messages, and other causes behind the same message, do not."""
    rows, first = FailedRows("check", BOLT), batch(rows=6)
    for place, error in enumerate(
        [poisoned("a"), poisoned("a"), poisoned("b"), poisoned("c", context=True), poisoned("d", context=True)]
    ):
        rows.blame(first, (place,), "process", error)
    found = told(rows, (first, [0, 1, 2, 3, 4]))
    assert [counters for _, counters, _ in found] == [[100, 101], [102], [103], [104]]
    assert "KeyError: 'd'" in found[-1][2].trace


@pytest.mark.parametrize("text", ["second", "two\nlines", "", "x" * 1500, "first"])
def test_each_row_has_its_own_message_and_the_traceback_that_python_prints(text: str) -> None:
    """The lines of the traceback are formatted once, because that takes longer than the rest."""
    rows, first = FailedRows("check", BOLT), batch()
    errors = [poisoned("first"), poisoned(text)]
    for place, error in enumerate(errors):
        rows.blame(first, (place,), "process", error)
    found = {counter: cause for _, counters, cause in told(rows, (first, [0, 1])) for counter in counters}
    for place, error in enumerate(errors):
        cause = found[100 + place]
        assert cause.trace == "".join(traceback.format_exception(error))
        assert cause.error == f"ValueError: {error}"[:1000]


def test_a_note_of_an_exception_is_in_its_traceback() -> None:
    """It is no part of the message, and may differ."""
    rows, first = FailedRows("check", BOLT), batch()
    for place in range(2):
        error = poisoned("a")
        error.add_note(f"in row {place}")
        rows.blame(first, (place,), "process", error)
    assert sorted(cause.trace[-9:] for _, _, cause in told(rows, (first, [0, 1]))) == ["in row 0\n", "in row 1\n"]


def test_the_tuples_of_a_unit_have_one_root() -> None:
    """A batch of columns with one id."""
    rows, unit = FailedRows("check", BOLT), batch(rows=1, tuples=3)
    rows.blame(unit, (2,), "process", ValueError("poison"))
    ((_, counters, cause),) = told(rows, (unit, [0]))
    assert (counters, cause.error) == ([100], "ValueError: poison")


def test_an_error_that_cannot_be_shown_and_one_that_is_large_are_told_within_the_limit() -> None:
    """The author's exception may do anything."""
    bad = FailureCause.of("check", BOLT, "process", BadTextError())
    assert bad.error == "BadTextError: <no message: its __str__ raised RuntimeError>"
    for text in ("\x01" * 100_000, "\U0001f600" * 100_000, "\ud800" * 100_000):
        data = encode_cause(FailureCause.of("check", BOLT, "process", ValueError(text)))
        assert len(data) <= MAX_CAUSE_BYTES
        assert decode_cause(data).error.startswith("ValueError: ")


def test_a_cause_that_cannot_be_read_says_so() -> None:
    """The letter is worth more than its cause."""
    assert decode_cause(b"") == FailureCause("", 0)
    assert decode_cause(b"{").error.startswith("the cause cannot be read: ")
