"""The dead letters of a topology: counts of all, the newest ones, and values only where tuples may be shown."""

from __future__ import annotations

from heron.ipc.documents.letter_line import LetterLine
from heron_service_tracker.answers.letters_answer import letters_answer, shown_in

MARKUP = "'<script>alert(1)</script>'"


def letter(number: int, component: str = "check", spout: str = "lines") -> LetterLine:
    shown, error = (str(number), MARKUP), "ValueError: <b>poison</b>"
    return LetterLine(f"1-0-{number}", spout, "default", shown, "1", 3, "failed", component, 4, error, "", 1.0, number)


def test_counts_are_of_all_letters_and_items_are_the_newest() -> None:
    """The component with the most letters is first."""
    letters = [letter(1, "other"), letter(2), letter(3), letter(4, spout="blocks")]
    answer = letters_answer(letters, 2)
    assert [(each.component, each.source, each.count) for each in answer.counts] == [
        ("check", "lines", 2),
        ("other", "lines", 1),
        ("check", "blocks", 1),
    ]
    assert [each.id for each in answer.items] == ["1-0-4", "1-0-3"]
    assert answer.total == 4


def test_values_are_shown_only_of_components_that_allow_it() -> None:
    """They are records of people. Where they are shown they are text as it came: the page makes no markup of it."""
    answer = letters_answer([letter(1), letter(2, spout="blocks")], 100)
    shown = shown_in(answer, 100, {"lines"})
    assert [(each.id, each.values) for each in shown.items] == [("1-0-2", ()), ("1-0-1", ("1", MARKUP))]
    assert [each.error for each in shown.items] == ["ValueError: <b>poison</b>"] * 2
    assert len(shown_in(answer, 1, ()).items) == 1
