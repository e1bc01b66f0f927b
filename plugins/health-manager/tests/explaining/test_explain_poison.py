"""A poisoned topology in words: the component and the line that fails its records, how many, and what to do."""

from __future__ import annotations

from dataclasses import replace

from heron.ipc.documents.letter_line import LetterLine
from heron.ipc.documents.status import TopologyStatus
from heron_health_manager.explaining.explain import explain
from heron_health_manager.explaining.explanation_text import explanation_lines
from heron_health_manager.explaining.facts import Facts, PastEvent

NOW_S = 1_795_612_800.0
TRACE = """Traceback (most recent call last):
  File "/engine/bolt_runner.py", line 9, in _process_slice
  File "/home/me/shop/prices.py", line 41, in price_of
ValueError: no price
"""
ERROR = PastEvent(
    NOW_S - 50.0,
    "user-error",
    "task-4",
    1,
    {"message": "component 'check', task 4: process raised ValueError: no price"},
)
FACTS = Facts(
    "shop", NOW_S, NOW_S - 600.0, status=TopologyStatus("shop", "shop-1", "running", NOW_S - 900.0), events=()
)


def letter(number: int, ago_s: float = 60.0, **changes: object) -> LetterLine:
    made = LetterLine(f"1-0-{number}", "lines", "default", (f"'record {number}'",), str(number), 3, "failed")
    fields = {"component": "check", "task_id": 4, "error": "ValueError: no price", "trace": TRACE, **changes}
    return LetterLine(
        **{**{name: getattr(made, name) for name in made.__struct_fields__}, **fields, "failed_s": NOW_S - ago_s}
    )


def lines_of(facts: Facts) -> str:
    return "\n".join(explanation_lines(explain(facts)))


def test_the_component_the_line_the_count_and_the_remedy_are_named() -> None:
    """The newest record is an example. The error of the same component, which names no record, is not repeated."""
    letters = (letter(1, 1000.0), letter(2, 60.0), letter(3, 30.0))
    text = lines_of(replace(FACTS, letters=letters, events=(ERROR,)))
    assert "check fails 2 records of lines each time, at prices.py:41 in price_of" in text
    for part in ("ValueError: no price", "such as 1-0-3: 'record 3'", "heron dead-letters shop list"):
        assert part in text, part
    assert [each.kind for each in explain(replace(FACTS, letters=letters, events=(ERROR,))).problems] == ["poisoned"]


def test_each_line_is_a_problem_of_its_own() -> None:
    """Two mistakes of a component need two corrections."""
    other = TRACE.replace("line 41", "line 7")
    found = explain(replace(FACTS, letters=(letter(1), letter(2, trace=other), letter(3))))
    assert [each.what.rpartition("at ")[2] for each in found.problems] == [
        "prices.py:41 in price_of",
        "prices.py:7 in price_of",
    ]


def test_records_that_expire_or_that_a_component_fails_itself_have_no_line() -> None:
    """A tree that is never complete is nobody's exception."""
    expired = letter(1, component="", error="", trace="", outcome="expired")
    assert "1 record of lines expired each time" in lines_of(replace(FACTS, letters=(expired,)))
    plain = letter(2, error="", trace="")
    assert "check calls fail() for them" in lines_of(replace(FACTS, letters=(plain,)))


def test_other_errors_of_a_component_with_letters_are_shown() -> None:
    """A mistake that made no letter needs its own correction; trees that expire do not hide errors of their spout."""
    message = "component 'check', task 4: process_tick raised KeyError: 'rate'"
    tick = replace(ERROR, attributes={"message": message})
    found = explain(replace(FACTS, letters=(letter(1),), events=(tick,)))
    assert [each.kind for each in found.problems] == ["poisoned", "errors"]
    spout = replace(ERROR, attributes={"message": "component 'lines', task 1: ack raised KeyError: 1"})
    expired = letter(1, component="", error="", trace="", outcome="expired")
    found = explain(replace(FACTS, letters=(expired,), events=(spout,)))
    assert [each.kind for each in found.problems] == ["poisoned", "errors"]


def test_old_letters_are_no_problem_of_now() -> None:
    """Somebody may keep them on purpose."""
    assert explain(replace(FACTS, letters=(letter(1, 1000.0),))).problems == ()


def test_hostile_texts_stay_on_their_line() -> None:
    """A record may contain line breaks, and be long."""
    hostile = letter(1, error="ValueError: a\nb" + "x" * 500, shown=("'y\n" + "y" * 500,))
    (problem,) = explain(replace(FACTS, letters=(hostile,))).problems
    assert all("\n" not in each and len(each) <= 120 for each in problem.why)
