"""Shrinks a program for as long as a predicate holds: from whole components down to single fields."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import MISSING, fields, is_dataclass, replace
from typing import Any

from heron_testing.random_topologies.program import BoltProgram, Call, Input, Program

__all__ = ["shrunk"]

_FIXED = frozenset({"seed", "name", "component", "inputs", "spouts", "bolts"})
_SMALLEST: dict[str, object] = {"mode": "ATMOST_ONCE", "ids": False, "batch_rows": 1}


def shrunk(program: Program, fails: Callable[[Program], object], *, most_runs: int = 1000) -> Program:
    """The smallest program found for which `fails` returns a true value.

    Args:
        program: a program for which it does.
        fails: runs a program, for example with `simulated_differences`. It may keep to one kind of difference.
        most_runs: how often it is called, at most.
    """
    runs = 0
    shrinks = True
    while shrinks:
        shrinks = False
        for smaller in _smaller(program):
            if runs == most_runs:
                return program
            runs += 1
            if fails(smaller):
                program, shrinks = smaller, True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    """Programs with one part less or one simpler part, those that lose most first."""
    names = [bolt.name for bolt in reversed(program.bolts)]
    if len(program.spouts) > 1:
        names += [spout.name for spout in program.spouts]
    yield from (_without(program, name) for name in names)
    for place, bolt in enumerate(program.bolts):
        for inputs in _simpler_inputs(program, bolt):
            yield replace(program, bolts=_with(program.bolts, place, replace(bolt, inputs=inputs)))
    for place, spout in enumerate(program.spouts):
        for calls in _fewer_calls(spout.calls):
            yield replace(program, spouts=_with(program.spouts, place, replace(spout, calls=calls)))
    yield from _simpler(program)


def _simpler_inputs(program: Program, bolt: BoltProgram) -> Iterator[tuple[Input, ...]]:
    """One input less; a single input directly from a spout."""
    if len(bolt.inputs) > 1:
        yield from (tuple(other for other in bolt.inputs if other != each) for each in bolt.inputs)
        return
    (only,) = bolt.inputs
    spouts = [spout.name for spout in program.spouts]
    if only.component not in spouts:
        yield from ((replace(only, component=name),) for name in spouts)


def _fewer_calls(calls: tuple[Call, ...]) -> Iterator[tuple[Call, ...]]:
    """Fewer calls, or fewer emits in one call."""
    yield from _fewer(calls)
    for number, call in enumerate(calls):
        for emits in _fewer(call.emits):
            yield _with(calls, number, replace(call, emits=emits))


def _without(program: Program, name: str) -> Program:
    """The program without a component and without bolts that have no other input."""
    gone = {name}
    bolts: list[BoltProgram] = []
    for bolt in program.bolts:
        inputs = tuple(each for each in bolt.inputs if each.component not in gone)
        if bolt.name in gone or not inputs:
            gone.add(bolt.name)
        else:
            bolts.append(replace(bolt, inputs=inputs))
    updates = tuple(
        replace(each, tasks={key: tasks for key, tasks in each.tasks.items() if key not in gone})
        for each in program.updates
        if each.rebalance not in gone and not (each.tasks and gone.issuperset(each.tasks))
    )
    return replace(
        program,
        spouts=tuple(each for each in program.spouts if each.name not in gone),
        bolts=tuple(bolts),
        updates=updates,
        containers=1,
    )


def _fewer(items: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """Halves, then all but one."""
    half = len(items) // 2
    if half > 1:
        yield items[:half]
        yield items[half:]
    for place in range(len(items)):
        yield items[:place] + items[place + 1 :]


def _simpler(value: Any) -> Iterator[Any]:  # noqa: ANN401  # a program or a part of it
    """The value with one field set to its default or to less, here and in its parts."""
    for each in fields(value):
        present = getattr(value, each.name)
        for simpler in _simpler_fields(each.name, present, each.default):
            yield replace(value, **{each.name: simpler})


def _simpler_fields(name: str, present: Any, default: Any) -> Iterator[Any]:  # noqa: ANN401
    if isinstance(present, tuple) and present and is_dataclass(present[0]):
        for place, item in enumerate(present):
            for simpler in _simpler(item):
                yield _with(present, place, simpler)
        if name == "updates":
            yield from _fewer(present)
        return
    if name in _FIXED:
        return
    smallest = _SMALLEST.get(name, present if default is MISSING else default)
    if present != smallest:
        yield smallest
    if isinstance(present, bool) or not (isinstance(present, int) and isinstance(smallest, int)):
        return
    if present > smallest + 1:
        yield (present + smallest) // 2
        yield present - 1


def _with(items: tuple[Any, ...], place: int, item: Any) -> tuple[Any, ...]:  # noqa: ANN401
    return (*items[:place], item, *items[place + 1 :])
