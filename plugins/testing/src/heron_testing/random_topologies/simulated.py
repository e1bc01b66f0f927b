"""Runs programs in the simulator."""

from __future__ import annotations

import random
from collections.abc import Sequence

from heron.kernel.settings import EngineSettings
from heron.spi.driver import DriverRef
from heron_simulator import Simulation
from heron_testing.fake_clock import FakeClock
from heron_testing.random_topologies.comparison import differences, unexpected_errors
from heron_testing.random_topologies.lineage import has_columns
from heron_testing.random_topologies.program import Program
from heron_testing.random_topologies.program_topology import topology_of
from heron_testing.random_topologies.task_memory import Remembering, TaskMemory

__all__ = ["simulated_differences"]

_MOST_STEPS = 3_000
_ARROW = DriverRef("serializer", "arrow", "heron_serializer_arrow.serializer:ArrowSerializer", {})


def simulated_differences(program: Program, *, serializers: Sequence[DriverRef] = ()) -> list[str]:
    """Run a program in the simulator, without its updates; return what it did otherwise than the program means.

    The seed of the program decides the order of the turns.

    Args:
        program: the program.
        serializers: as of `heron_simulator.Simulation`, beside ``arrow``.
    """
    chance = random.Random(program.seed)
    settings = EngineSettings(
        batch_rows=program.batch_rows, batch_bytes=program.batch_bytes, tuple_max_bytes=program.tuple_max_bytes
    )
    simulation = Simulation(
        topology_of(program),
        clock=FakeClock(),
        seed=chance.choice((None, program.seed)),
        calls_per_step=chance.choice((1, 3, 100)),
        serializers=(*serializers, _ARROW) if has_columns(program) else serializers,
        settings=settings,
    )
    with simulation:
        try:
            simulation.run_until_finished(_MOST_STEPS)
        except Exception as error:  # also an engine that fails differs
            return [f"{type(error).__name__}: {error}"]
        return [*unexpected_errors(program, simulation.errors()), *differences(program, _memories(program, simulation))]


def _memories(program: Program, simulation: Simulation) -> list[TaskMemory]:
    found = []
    for each in program.components:
        for index in range(each.tasks):
            component = simulation.component(each.name, index)
            assert isinstance(component, Remembering)
            assert component.memory is not None
            found.append(component.memory)
    return found
