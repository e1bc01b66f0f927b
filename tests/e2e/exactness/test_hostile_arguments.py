"""Hostile arguments as processes: no task dies, and neighbours arrive."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import pytest

from heron_testing.hostile_arguments.arguments import ARGUMENTS
from heron_testing.hostile_arguments.calls import CALLS, Caller
from heron_testing.hostile_arguments.cells import PLACES, Cell
from heron_testing.hostile_arguments.components import Place
from heron_testing.hostile_arguments.processes import faults_of_processes

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

GROUPS = [(caller, place) for caller in (Caller.BOLT, Caller.SPOUT, Caller.GROUPING) for place in PLACES[caller]]
"""A topology for each: the cells of one caller in one place."""


def cells_of(caller: Caller, place: Place) -> Sequence[Cell]:
    """A cell for each call; the arguments are those of a diagonal, which begins elsewhere in each place."""
    names, begin = list(ARGUMENTS), 4 * PLACES[caller].index(place)
    calls = [call for call in CALLS if call.caller is caller]
    return [Cell(call, names[(begin + number) % len(names)], place) for number, call in enumerate(calls)]


@pytest.mark.parametrize(("caller", "place"), GROUPS, ids=lambda each: each.value.replace(" ", "-"))
def test_no_call_ends_its_task(sandbox: Sandbox, caller: Caller, place: Place) -> None:
    """As in the simulator; here metrics are sent, threads are real, and a task could die."""
    assert faults_of_processes(sandbox, cells_of(caller, place)) == []
