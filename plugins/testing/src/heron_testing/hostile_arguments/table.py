"""The matrix as a table of a document, from what the cells gave."""

from __future__ import annotations

from collections.abc import Mapping

from heron_testing.hostile_arguments.arguments import ARGUMENTS
from heron_testing.hostile_arguments.calls import CALLS, Call, Caller
from heron_testing.hostile_arguments.cells import PLACES, Cell, Outcome

__all__ = ["matrix_text", "outcomes_of", "read_matrix", "sign_at", "with_matrix"]

_SIGNS = {Outcome.WORKS: "·", Outcome.REFUSED: "r", Outcome.FAILS: "f", Outcome.FAULT: "**X**"}


def matrix_text(outcomes: Mapping[Cell, Outcome]) -> str:
    """A table for each caller: a row for each call, a column for each argument."""
    parts = [_part(caller, outcomes) for caller in Caller]
    return "\n\n".join(parts) + "\n"


def with_matrix(page: str, text: str) -> str:
    """A page with these tables behind its last heading."""
    head, heading, _ = page.rpartition("\n## ")
    title = page[len(head) + len(heading) :].split("\n", 1)[0]
    return f"{head}{heading}{title}\n\n{text}"


def outcomes_of(call: Call, argument: str, outcomes: Mapping[Cell, Outcome]) -> str:
    """The signs of an entry: one if all places give the same, else one for each, in the order of `PLACES`."""
    signs = [_SIGNS[outcomes[Cell(call, argument, place)]] for place in PLACES[call.caller]]
    return signs[0] if len({*signs}) == 1 else "".join(signs)


def sign_at(entry: str, cell: Cell) -> Outcome | None:
    """The outcome that an entry has for a cell; None if it has none."""
    places = PLACES[cell.call.caller]
    sign = entry if len(entry) == 1 else entry[places.index(cell.place)] if len(entry) == len(places) else ""
    return next((outcome for outcome, each in _SIGNS.items() if each == sign), None)


def read_matrix(text: str) -> dict[tuple[str, str, str], str]:
    """The entries of the tables in a document, by caller, line of the call, and argument."""
    entries: dict[tuple[str, str, str], str] = {}
    caller = ""
    columns: list[str] = []
    for line in text.rpartition("\n## ")[2].splitlines():
        if line.startswith("| ") and " | " in line:
            first, *signs = [each.strip() for each in line.strip("|").replace(r"\|", "/").split("|")]
            if first.startswith("`"):
                entries |= {(caller, first.strip("`"), name): sign for name, sign in zip(columns, signs, strict=True)}
            elif first in {*Caller}:
                caller, columns = first, signs
    return entries


def _part(caller: Caller, outcomes: Mapping[Cell, Outcome]) -> str:
    rows = [[caller.value, *ARGUMENTS], ["---", *("---" for _ in ARGUMENTS)]]
    rows += [
        [f"`{call.line}`", *(outcomes_of(call, argument, outcomes) for argument in ARGUMENTS)]
        for call in CALLS
        if call.caller is caller
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)
