"""Runs a cell of a pipeline in the simulator: an operator gets an argument, or a function of the author returns it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from types import ModuleType
from typing import Any

from heron.api.capture import capture_topologies
from heron.errors import LimitExceededError, TopologyFailedError
from heron_simulator import Simulation
from heron_streamlet import Builder, Config, Items, Streamlet
from heron_streamlet.topology.topology_compiler import compile_topology
from heron_testing.fake_clock import FakeClock
from heron_testing.hostile_arguments.author_file import FILE_NAME, line_of
from heron_testing.hostile_arguments.calls import CALLS
from heron_testing.hostile_arguments.cells import Cell, Outcome, Verdict, verdict_of_call, wrong_error
from heron_testing.pipelines.collected import COLLECTED, Collect

__all__ = ["verdict_of_pipeline"]

_ELEMENTS = range(1, 7)
_CELL = 5
_MOST_STEPS = 500
_RAISED = re.compile(r" raised (\w+)(?:: |;)")


def verdict_of_pipeline(cell: Cell, author: ModuleType) -> Verdict:
    """Run a cell; the elements beside that of the cell must arrive once, also on a branch of their own."""
    COLLECTED.clear()
    argument = author.ARGUMENTS[cell.argument]()
    builder = Builder()
    stream = builder.new_source(Items(_ELEMENTS))
    stream.to_sink(Collect("branch"))

    def answer(element: int) -> object:
        return argument if element == _CELL else element

    def answers(element: int) -> object:
        return argument if element == _CELL else [element]

    at_the_call = True
    try:
        with capture_topologies():
            result = author.CALLS[CALLS.index(cell.call)](builder, stream, answer, answers, argument)
        at_the_call = False
        collected = isinstance(result, Streamlet)
        if collected:
            result.to_sink(Collect("out"))
        topology = compile_topology("pipeline", builder.graph(), Config().values())
        with Simulation(topology, clock=FakeClock()) as simulation:
            simulation.run_until_finished(_MOST_STEPS)
            errors = simulation.errors()
    except TopologyFailedError as error:
        return Verdict(Outcome.FAULT, f"the run ends: {error}")
    except LimitExceededError as error:
        endless = callable(argument) and "new_source" in cell.call.line  # a function is a source without an end
        return Verdict(Outcome.WORKS if endless else Outcome.FAULT, f"it did not end: {error}")
    except BaseException as error:
        return verdict_of_call(cell, error, at_the_call=at_the_call)
    # A function of the author in the place of the argument gives what it gives.
    is_function = callable(argument) and not any(each in cell.call.line for each in ("answer", "lambda"))
    if missing := _missing(collected and not is_function, errors):
        return Verdict(Outcome.FAULT, f"{missing}; errors: {errors}")
    return _judged(cell, errors)


def _missing(collected: bool, errors: Sequence[str]) -> str:
    neighbours = [each for each in _ELEMENTS if each != _CELL]
    if (branch := sorted(COLLECTED.get("branch", []))) != list(_ELEMENTS):
        return f"the branch got {branch}"
    if not collected:
        return ""
    arrived = [_number_of(each) for each in COLLECTED.get("out", [])]
    if not {*neighbours} <= {*arrived}:
        return f"neighbours {neighbours} arrived as {arrived}"
    return ""


def _number_of(element: Any) -> int | None:  # noqa: ANN401  # what the pipeline made
    """The number that an element is, or begins with."""
    if type(element) is int:
        return element
    return _number_of(next(iter(element))) if isinstance(element, tuple) and element else None


def _judged(cell: Cell, errors: Sequence[str]) -> Verdict:
    for error in errors:
        if f"{FILE_NAME}" not in error or f"{line_of(cell.call)}" not in error:
            return Verdict(Outcome.FAULT, f"no line of the author: {error}")
        found = _RAISED.search(error)
        if found is None or (problem := wrong_error(cell, found[1], error)):
            return Verdict(Outcome.FAULT, f"{problem if found else 'no class'}: {error}")
    return Verdict(Outcome.FAILS, errors[0]) if errors else Verdict(Outcome.WORKS)
