"""Hostile arguments as processes: no task dies, neighbours arrive, and the errors are those of the page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron_testing.hostile_arguments.arguments import ARGUMENTS
from heron_testing.hostile_arguments.calls import CALLS, Caller
from heron_testing.hostile_arguments.cells import PLACES, Cell, Outcome
from heron_testing.hostile_arguments.components import Place
from heron_testing.hostile_arguments.processes import faults_of_processes
from heron_testing.hostile_arguments.table import read_matrix, sign_at

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

PAGE = Path(__file__).parents[3] / "docs" / "hostile-arguments.md"
GROUPS = [(caller, place) for caller in (Caller.BOLT, Caller.SPOUT, Caller.GROUPING) for place in PLACES[caller]]
"""A topology for each: the cells of one caller in one place."""


def cells_of(caller: Caller, place: Place) -> Mapping[Cell, Outcome]:
    """A cell for each call, as on the page; the arguments are a diagonal, which begins elsewhere in each place."""
    names, begin = list(ARGUMENTS), 4 * PLACES[caller].index(place)
    calls = [call for call in CALLS if call.caller is caller]
    entries = read_matrix(PAGE.read_text(encoding="utf-8"))
    found = {}
    for number, call in enumerate(calls):
        cell = Cell(call, names[(begin + number) % len(names)], place)
        outcome = sign_at(entries[call.caller, call.line, cell.argument], cell)
        assert outcome is not None
        found[cell] = outcome
    return found


@pytest.mark.parametrize(("caller", "place"), GROUPS, ids=lambda each: each.value.replace(" ", "-"))
def test_no_call_ends_its_task(sandbox: Sandbox, caller: Caller, place: Place) -> None:
    """As in the simulator; here metrics are sent, threads are real, and a task could die."""
    assert faults_of_processes(sandbox, cells_of(caller, place)) == []
