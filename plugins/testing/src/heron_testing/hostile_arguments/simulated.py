"""Runs a cell in the simulator: a topology of its own, with neighbours that must arrive."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

from heron.api import TopologyBuilder
from heron.api.capture import capture_topologies
from heron.errors import TopologyFailedError
from heron.spi.driver import DriverRef
from heron_simulator import Simulation
from heron_testing.fake_clock import FakeClock
from heron_testing.hostile_arguments.author_file import loaded
from heron_testing.hostile_arguments.calls import CALLS, Caller
from heron_testing.hostile_arguments.cells import Cell, Outcome, Verdict, judged, verdict_of_call
from heron_testing.hostile_arguments.components import NEIGHBOURS, HostileSpout, Place, Sink, Source
from heron_testing.hostile_arguments.matrix_topology import topology_of
from heron_testing.hostile_arguments.pipelines import verdict_of_pipeline

__all__ = ["verdict_of"]

_MOST_STEPS = 2_000
_ARROW = DriverRef("serializer", "arrow", "heron_serializer_arrow.serializer:ArrowSerializer", {})
_ENDS_THE_RUN = {Place.INITIALIZE, Place.FINISH}


def verdict_of(cell: Cell, folder: Path) -> Verdict:
    """Run a cell. `folder` is where the author's file is written; any cell may use it again."""
    author = loaded(folder)
    run = {Caller.FILE: _verdict_of_file, Caller.PIPELINE: verdict_of_pipeline}.get(cell.call.caller, _verdict_of_task)
    return run(cell, author)


def _verdict_of_task(cell: Cell, author: ModuleType) -> Verdict:
    builder = topology_of(author, cell.place, [(CALLS.index(cell.call), cell.argument)])
    try:
        simulation = Simulation(builder, clock=FakeClock(), serializers=[_ARROW])
        with simulation:
            _run(simulation, cell)
            simulation.read_metrics("hostile")
            errors = simulation.errors()
            missing = _missing(simulation, cell, errors)
    except TopologyFailedError as error:
        if cell.place not in _ENDS_THE_RUN:
            return Verdict(Outcome.FAULT, f"the run ends: {error}")
        return judged(cell, [str(error)])
    except BaseException as error:
        return Verdict(Outcome.FAULT, f"the engine raised {type(error).__name__}: {error}")
    if missing:
        return Verdict(Outcome.FAULT, f"{missing}; errors: {errors}")
    return judged(cell, errors)


def _run(simulation: Simulation, cell: Cell) -> None:
    for _ in range(4):
        simulation.step()
    if cell.place is Place.TICK:
        simulation.advance(1.5)
    source = simulation.component("hostile" if cell.call.caller is Caller.SPOUT else "source")
    assert isinstance(source, HostileSpout | Source)
    source.pause.over = True
    simulation.run_until_finished(_MOST_STEPS)


def _missing(simulation: Simulation, cell: Cell, errors: tuple[str, ...]) -> str:
    """What has not arrived."""
    sink = simulation.component("sink")
    spout = simulation.component("hostile" if cell.call.caller is Caller.SPOUT else "source")
    assert isinstance(sink, Sink)
    assert isinstance(spout, HostileSpout | Source)
    neighbours = [number for number in range(2 + NEIGHBOURS) if number != 1]
    arrived = sorted(number for number in sink.numbers if number != 1)
    if arrived != neighbours:
        return f"neighbours {neighbours} arrived as {arrived}"
    if sorted(number for number in spout.acked if number != 1) != neighbours:
        return f"neighbours {neighbours} were acked as {sorted(spout.acked)}"
    if sorted([*spout.acked, *spout.failed]) != [*range(2 + NEIGHBOURS)]:
        return f"the numbers were acked as {spout.acked}, and failed as {spout.failed}"
    if not errors and (others := simulation.counts()["hostile"].emitted - len(sink.numbers)) != sink.others:
        return f"{sink.others} of {others} tuples arrived, without an error"
    return ""


def _verdict_of_file(cell: Cell, author: ModuleType) -> Verdict:
    builder = TopologyBuilder("hostile")
    source = builder.add_spout("source", Source, 1, config={"cells": []})
    builder.add_bolt("sink", author.AuthorSink, 1, [source])
    at_the_call = True
    try:
        author.CALLS[CALLS.index(cell.call)](builder, source, author.ARGUMENTS[cell.argument]())
        at_the_call = False
        with capture_topologies():
            builder.build_and_submit()
        simulation = Simulation(builder, clock=FakeClock())
        with simulation:
            simulation.step()
    except BaseException as error:
        return verdict_of_call(cell, error, at_the_call=at_the_call)
    return Verdict(Outcome.WORKS)
