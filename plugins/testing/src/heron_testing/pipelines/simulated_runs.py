"""Runs pipelines in this process, and collects what their sinks receive."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from heron.api import DeadLetter
from heron.clock import Clock
from heron_simulator import Simulation
from heron_streamlet import Builder, Config
from heron_streamlet.topology.source_spout import SourceSpout
from heron_streamlet.topology.topology_compiler import compile_topology
from heron_testing.fake_clock import FakeClock
from heron_testing.pipelines.collected import COLLECTED

__all__ = ["Run", "run_simulated"]

_LOOK_S = 0.1  # more than the time between two watermarks


class Run:
    """A finished run; `failed` is the sum of the metric of this name, `letters` are those of all components."""

    def __init__(
        self,
        collected: Mapping[str, list[Any]],
        errors: tuple[str, ...],
        failed: int = 0,
        letters: Sequence[DeadLetter] = (),
    ) -> None:
        self.collected = collected
        self.errors = errors
        self.failed = failed
        self.letters = list(letters)

    def __getitem__(self, name: str) -> list[Any]:
        return sorted(self.collected.get(name, []), key=repr)


class _PassingClock(FakeClock):
    """Time passes whenever somebody looks, so that a watermark follows each read."""

    def monotonic_s(self) -> float:
        self.advance(_LOOK_S)
        return super().monotonic_s()


def run_simulated(
    builder: Builder, config: Config | None = None, *, seed: int | None = None, clock: Clock | None = None
) -> Run:
    """Runs a pipeline to its end; with the default clock of sources, a watermark follows each read."""
    COLLECTED.clear()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SourceSpout, "clock", clock or _PassingClock())
        return _run(builder, config or Config(), seed)


def _run(builder: Builder, config: Config, seed: int | None) -> Run:
    topology = compile_topology("pipeline", builder.graph(), config.values())
    with Simulation(topology, clock=FakeClock(), seed=seed) as simulation:
        simulation.run_until_finished()
        errors = simulation.errors()
        tasks = [(each.name, index) for each in topology.definition().components for index in range(each.parallelism)]
        failed = sum(int(simulation.read_metrics(*each).get("failed", 0)) for each in tasks)
        letters = [each for name in dict(tasks) for each in simulation.dead_letters(name)]
    return Run({name: list(values) for name, values in COLLECTED.items()}, errors, failed, letters)
