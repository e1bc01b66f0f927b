"""``heron run --simulate``: runs a loaded topology in this process and in real time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from heron.api.definition import TopologyDefinition
from heron.clock import SystemClock, monotonic_s
from heron.errors import TopologyFailedError
from heron.instance.user.user_component import UserPackage
from heron.kernel.manifest import PackageManifest
from heron.planner.physical_plan import TopologyState
from heron.spi.driver import DriverRef
from heron_simulator.simulated_task import ComponentCounts
from heron_simulator.simulation import Simulation

__all__ = ["SimulationResult", "simulate"]

_CALLS_PER_STEP = 100  # larger batches cost less, and ticks are still in time


@dataclass(frozen=True, slots=True)
class SimulationResult:
    """The end of a simulation: `state` is finished, killed or failed; `error` is the reason if it did not finish."""

    state: str
    components: dict[str, ComponentCounts] = field(default_factory=dict)
    error: str = ""


def simulate(
    definition: TopologyDefinition,
    package_dir: Path,
    manifest: PackageManifest,
    *,
    timeout_s: float | None,
    serializers: Sequence[DriverRef] = (),
) -> SimulationResult:
    """Runs the topology of the author's file in `package_dir` until it ends or `timeout_s` have passed.

    Raises:
        UsageError: when the topology does not verify.
    """
    deadline_s = math.inf if timeout_s is None else monotonic_s() + timeout_s
    package = UserPackage(package_dir, manifest)
    try:
        simulation = Simulation(
            definition, clock=SystemClock(), code=package, calls_per_step=_CALLS_PER_STEP, serializers=serializers
        )
    except TopologyFailedError as error:
        return SimulationResult(TopologyState.FAILED.value, error=str(error))
    with simulation:
        problem = _run(simulation, deadline_s, timeout_s)
    return SimulationResult(simulation.state.value, simulation.counts(), problem)


def _run(simulation: Simulation, deadline_s: float, timeout_s: float | None) -> str:
    try:
        while simulation.state is TopologyState.RUNNING:
            if monotonic_s() >= deadline_s:
                return f"not finished within {timeout_s:g} s"
            if not simulation.step():
                simulation.pass_time()
    except TopologyFailedError as error:
        return str(error)
    return ""
