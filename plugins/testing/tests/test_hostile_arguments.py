"""Every call of authors with hostile arguments: no cell is a fault, and the page of the matrix says what each gives."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from heron.api.bolt import BaseBolt
from heron.instance.output.emitter import Emitter
from heron_testing.hostile_arguments.arguments import ARGUMENTS
from heron_testing.hostile_arguments.author_file import author_text, line_of
from heron_testing.hostile_arguments.calls import CALLS, Call, Caller
from heron_testing.hostile_arguments.cells import PLACES, Cell, Outcome, cells, contradictions, judged, verdict_of_call
from heron_testing.hostile_arguments.components import Place
from heron_testing.hostile_arguments.simulated import verdict_of
from heron_testing.hostile_arguments.table import matrix_text, read_matrix, sign_at, with_matrix

PAGE = Path(__file__).parents[3] / "docs" / "hostile-arguments.md"
ARGUMENTS_OF_A_CALL = 3
"""How many of its arguments the short form runs for a call, each in one place: about 4 s of a core."""


@pytest.fixture(autouse=True)
def _quiet(capsys: pytest.CaptureFixture[str]) -> Iterator[None]:
    """The engine shows thousands of errors."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)
    capsys.readouterr()


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("author")


def diagonal() -> Iterator[Cell]:
    """A few arguments of each call, such that all arguments and places occur."""
    names = list(ARGUMENTS)
    for number, call in enumerate(CALLS):
        for turn in range(ARGUMENTS_OF_A_CALL):
            step = number + turn * len(names) // ARGUMENTS_OF_A_CALL
            places = PLACES[call.caller]
            yield Cell(call, names[step % len(names)], places[(number + turn) % len(places)])


def check(chosen: Iterator[Cell], folder: Path) -> None:
    """Run cells, and compare them with the page."""
    entries, wrong = read_matrix(PAGE.read_text(encoding="utf-8")), []
    for cell in chosen:
        verdict = verdict_of(cell, folder)
        entry = entries.get((cell.call.caller, cell.call.line, cell.argument), "none")
        if verdict.outcome is Outcome.FAULT or sign_at(entry, cell) != verdict.outcome:
            wrong.append(f"{cell}: {verdict.outcome}, on the page {entry}; {verdict.reason}")
    assert not wrong, "\n".join(wrong).encode("utf-8", "backslashreplace").decode()


def test_a_few_arguments_of_each_call_give_what_the_page_says(folder: Path) -> None:
    """Neighbours arrive, and each error has the author's line; `python -m heron_testing.hostile_arguments PAGE`."""
    check(diagonal(), folder)


@pytest.mark.matrix
@pytest.mark.timeout(3600)
def test_all_cells_give_what_the_page_says(folder: Path) -> None:
    """All arguments in all places: about a minute of a core."""
    check(cells(), folder)


def test_the_page_has_each_call_and_no_fault() -> None:
    """A call that is added needs its row."""
    entries = read_matrix(PAGE.read_text(encoding="utf-8"))
    assert list(entries) == [(call.caller, call.line, name) for call in CALLS for name in ARGUMENTS]
    assert {sign for entry in entries.values() for sign in entry} <= set("·rf")


def test_a_table_is_read_as_it_was_written() -> None:
    """An entry whose places differ has a sign for each place."""
    outcomes = dict.fromkeys(cells(), Outcome.WORKS)
    call = next(each for each in CALLS if each.caller is Caller.SPOUT)
    outcomes[Cell(call, "None", Place.CALLBACK)] = Outcome.REFUSED
    entries = read_matrix(with_matrix("# Page\n\n## Matrix\n\nold\n", matrix_text(outcomes)))
    assert entries.pop((Caller.SPOUT, call.line, "None")) == "··r·"
    assert {*entries.values()} == {"·"}
    assert sign_at("··r·", Cell(call, "None", Place.CALLBACK)) is Outcome.REFUSED


def cell_of(line: str, argument: str, place: Place = Place.PROCESS) -> Cell:
    return Cell(Call(Caller.BOLT, line), argument, place)


def _raises(*_: object) -> None:
    raise LookupError


def _silent(*_: object) -> None:
    pass


@pytest.mark.parametrize(
    ("owner", "name", "broken", "cell", "message"),
    [
        (BaseBolt, "is_tick", _raises, cell_of("self.is_tick(X)", "None"), "no line of the author"),
        (Emitter, "flush", _silent, cell_of("self.log(X)", "True"), "did not|arrived as"),
        (
            BaseBolt,
            "is_tick",
            repr,
            cell_of("self.is_tick(X)", "`__repr__` raises"),
            "calls __repr__",
        ),
    ],
)
def test_a_wrong_engine_is_a_fault(
    monkeypatch: pytest.MonkeyPatch,
    folder: Path,
    owner: type,
    name: str,
    broken: Callable[..., Any],
    cell: Cell,
    message: str,
) -> None:
    """The matrix can fail: by the class of an error, by neighbours, by a text that calls the value."""
    monkeypatch.setattr(owner, name, staticmethod(broken) if name == "is_tick" else broken)
    verdict = verdict_of(cell, folder)
    assert verdict.outcome is Outcome.FAULT
    assert any(each in verdict.reason for each in message.split("|"))


def test_an_error_without_the_authors_line_is_a_fault() -> None:
    """So is the error of a neighbour, and one that names no component."""
    cell = Cell(CALLS[0], "None", Place.PROCESS)
    error = "topology 'hostile', component '{}', task 2: process raised TypeError: no; at {}, line 9; it goes on"
    assert judged(cell, [error.format("hostile", "/a/hostile_author.py")]).outcome is Outcome.REFUSED
    assert judged(cell, [error.format("hostile", "/a/emitter.py")]).outcome is Outcome.FAULT
    assert judged(cell, [error.format("source", "/a/hostile_author.py")]).outcome is Outcome.FAULT
    assert judged(cell, ["it failed"]).outcome is Outcome.FAULT


def test_an_error_that_only_its_text_has_caused_is_a_fault() -> None:
    """Python's refusal to write a very long integer says nothing about the call."""
    cell = Cell(CALLS[0], "huge", Place.PROCESS)
    with pytest.raises(ValueError, match="integer string conversion") as caught:
        str(10**5_000)
    place = "at /a/hostile_author.py, line 9; it goes on"
    error = f"component 'hostile', task 2: process raised ValueError: {caught.value}; {place}"
    assert judged(cell, [error]).outcome is Outcome.FAULT
    assert verdict_of_call(cell, caught.value, at_the_call=True).outcome is Outcome.FAULT
    assert verdict_of_call(cell, ValueError("a number"), at_the_call=True).outcome is Outcome.REFUSED


def test_the_errors_of_many_cells_are_compared_with_their_outcomes() -> None:
    """A task that ran them all names each refused call at its line, and no other one."""
    first, second = (Cell(call, "None", Place.PROCESS) for call in CALLS[:2])
    place = f"/a/hostile_author.py, line {line_of(first.call)}"
    error = f"topology 'hostile', component 'hostile', task 2: process raised TypeError: no; at {place}; it goes on"
    assert contradictions({first: Outcome.REFUSED, second: Outcome.WORKS}, [error]) == []
    (missing,) = contradictions({first: Outcome.REFUSED, second: Outcome.REFUSED}, [error])
    assert missing.endswith("no error instead of refused")
    (surplus,) = contradictions({first: Outcome.WORKS, second: Outcome.WORKS}, [error])
    assert "refused instead of works" in surplus


@pytest.mark.parametrize(
    ("raised", "line", "argument"),
    [
        ("HostileError: none", "class RaisingHash:", "`__hash__` raises"),
        ("SerializationError: a value of type function cannot be encoded", "class AuthorBolt(", "lambda"),
        ("UsageError: ack of a generator; give what was received", "class AuthorBolt(", "generator"),
        ("UsageError: its value, <int of 16,610 bits>, is not a number", "class AuthorBolt(", "huge"),
    ],
)
def test_an_error_of_a_class_excuses_only_cells_whose_argument_it_names(raised: str, line: str, argument: str) -> None:
    """Without a line of a call it could be of each of them; a refusal that went missing would not be noticed."""
    number = author_text().partition(line)[0].count("\n") + 1
    error = f"component 'hostile', task 2: process raised {raised}; at /a/hostile_author.py, line {number}; it goes on"
    named, other = (Cell(CALLS[place], name, Place.PROCESS) for place, name in ((0, argument), (1, "object")))
    (missing,) = contradictions({named: Outcome.REFUSED, other: Outcome.REFUSED}, [error])
    assert missing == f"{other}: no error instead of refused"
