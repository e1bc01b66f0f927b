"""Runs pipelines in this process, and collects what their sinks receive."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from heron_simulator import Simulation
from heron_streamlet import Builder, Config, Sink
from heron_streamlet.topology_compiler import compile_topology
from heron_testing.fake_clock import FakeClock

__all__ = ["COLLECTED", "Collect", "Run", "run_simulated"]

COLLECTED: dict[str, list[Any]] = {}
"""What each `Collect` of the present run received, by its name. Tasks have copies of a sink, so they share a module."""


class Collect(Sink[Any]):
    """Collects elements under a name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def put(self, element: Any) -> None:  # noqa: ANN401
        COLLECTED.setdefault(self.name, []).append(element)


class Run:
    """A finished run."""

    def __init__(self, collected: Mapping[str, list[Any]], errors: tuple[str, ...]) -> None:
        self.collected = collected
        self.errors = errors

    def __getitem__(self, name: str) -> list[Any]:
        return sorted(self.collected.get(name, []), key=repr)


def run_simulated(builder: Builder, config: Config | None = None, *, seed: int | None = None) -> Run:
    """Runs a pipeline to its end; fails when a function fails."""
    COLLECTED.clear()
    topology = compile_topology("pipeline", builder.graph(), (config or Config()).values())
    with Simulation(topology, clock=FakeClock(), seed=seed) as simulation:
        simulation.run_until_finished()
        errors = simulation.errors()
    return Run({name: list(values) for name, values in COLLECTED.items()}, errors)
