"""One simulation: a topology with all of its processes, from its submission to its end."""

from __future__ import annotations

import contextlib
import io
import logging
import shutil
import sys
import tempfile
from dataclasses import dataclass, field, replace
from pathlib import Path

from heron.ipc.keys import KeyPair, TopologyKeys
from heron.kernel.manifest import PackageManifest
from heron.kernel.package import pack
from heron.planner.packing_plan import NO_RESOURCE, ContainerPlan, InstancePlan, PackingPlan
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec
from heron.spi.statemgr import NodeKind
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.plans import encode_plan
from heron.state_nodes.topology_keys import encode_keys
from heron_testing.seeded.faults import Fault, FaultKind, Faults
from heron_testing.seeded.network import Network
from heron_testing.seeded.roles import Container, RoleProcesses
from heron_testing.seeded.stores import Nodes, Objects, Site
from heron_testing.seeded.workload import Outside, word_count
from heron_testing.seeded.world import World

__all__ = ["Outcome", "Scenario", "simulate"]

_TOPOLOGY, _RUN = "words", "words-1"
_PLACES = {
    1: (("sentences", 1, 0), ("split", 3, 0), ("count", 5, 0)),
    2: (("sentences", 2, 1), ("split", 4, 1), ("count", 6, 1)),
}
_STORES = "heron_testing.seeded.stores"


@dataclass(frozen=True, slots=True)
class Scenario:
    """What happens in a run besides what chance decides: its faults, and how much data there is."""

    seed: int
    faults: tuple[Fault, ...] = ()
    with_state: bool = False
    """Effectively once, with checkpoints; else at least once."""
    sentences: int = 100
    period_s: float = 0.1
    """Four sentences come together."""
    limit_s: float = 120.0
    """A run that has not ended this time after its last fault, in simulated seconds, is stuck."""

    def is_exact(self) -> bool:
        """Whether each word is counted once: always with state, else if nothing fails."""
        return self.with_state or all(each.kind is FaultKind.UPDATE for each in self.faults)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The end of a run: `problems` is empty if every invariant held."""

    scenario: Scenario
    trace_hash: str
    lasted_s: float
    events: int
    problems: tuple[str, ...]
    trace: tuple[str, ...] = field(default=(), repr=False)


def simulate(scenario: Scenario, *, keeps_trace: bool = False) -> Outcome:
    """Runs a scenario. The process must have begun with `heron_testing.seeded.clocks.install`."""
    folder = Path(tempfile.mkdtemp(prefix="hs-"))
    path, modules = list(sys.path), set(sys.modules)
    try:
        return _Simulation(scenario, folder, keeps_trace=keeps_trace).run()
    finally:
        sys.path[:] = path
        for name in set(sys.modules) - modules:
            if name == "nothing":  # the author's file
                del sys.modules[name]
        shutil.rmtree(folder, ignore_errors=True)


class _Simulation:
    def __init__(self, scenario: Scenario, folder: Path, *, keeps_trace: bool) -> None:
        self._scenario = scenario
        self._folder = folder
        self._keeps_trace = keeps_trace
        self.world = World.present = World(scenario.seed, keeps_trace=keeps_trace)
        self.network = Network(self.world)
        self.nodes = Site.nodes = Nodes(self.world, lease_s=3.0)
        self.objects = Site.objects = Objects()
        self.outside = Outside.present = Outside(2, scenario.sentences, scenario.period_s)
        self.processes = RoleProcesses(self.world, self.network, self.nodes)
        self.containers = [self._container(each) for each in (0, *_PLACES)]
        self.faults = Faults(
            self.world, self.network, self.nodes, self.objects, self.processes, self.containers, _TOPOLOGY
        )

    def run(self) -> Outcome:
        """Runs to the end."""
        self._submit()
        for each in self.containers:
            each.on_end = self._container_ended
            self.world.after(self.world.draw.uniform(0.0, 0.05), each.start)
        for fault in self._scenario.faults:
            self.faults.schedule(fault)
        last_s = max((each.at_s + each.lasts_s for each in self._scenario.faults), default=0.0)
        work_s = self._scenario.sentences * self._scenario.period_s / 4
        log, logger = _Notes(self.world, self._folder), logging.getLogger("heron")
        printed = contextlib.redirect_stderr(_Printed(self.world))
        logger.propagate = False
        logger.setLevel(logging.INFO if self._keeps_trace else logging.CRITICAL)
        logger.addHandler(log)
        try:
            with printed:
                self.world.run(max(last_s, work_s) + self._scenario.limit_s)
                self.processes.abandon()
        finally:
            logger.removeHandler(log)
        problems = [*self.processes.crashes, *self.nodes.problems]
        if not self.world.is_over:
            problems.append(f"it has not ended {self._scenario.limit_s:g} s after its last fault")
        problems += self.outside.check(exactly=self._scenario.is_exact())
        return Outcome(
            self._scenario,
            self.world.trace_hash,
            self.world.now_s,
            self.world.events,
            tuple(problems),
            tuple(self.world.trace),
        )

    def _container_ended(self) -> None:
        self.world.is_over = all(each.has_ended for each in self.containers)

    def _submit(self) -> None:
        mode: dict[str, object] = {"topology.reliability.mode": "ATLEAST_ONCE", "topology.message.timeout.secs": 5}
        if self._scenario.with_state:
            mode = {
                "topology.reliability.mode": "EFFECTIVELY_ONCE",
                "topology.stateful.checkpoint.interval.seconds": 0.4,
            }
        definition = word_count(mode | {"topology.name": _TOPOLOGY}, with_state=self._scenario.with_state)
        packing = PackingPlan(
            "seeded",
            tuple(
                ContainerPlan(number, tuple(InstancePlan(*each, NO_RESOURCE) for each in tasks), NO_RESOURCE)
                for number, tasks in _PLACES.items()
            ),
        )
        state = ExecutionState(_TOPOLOGY, _RUN, 0.0, "user", "host", "seeded", "", "", "", attached=False)
        pairs = (KeyPair(f"{each}" * 40, f"{each.upper()}" * 40) for each in "smcr")
        for kind, value in {
            NodeKind.EXECUTION_STATE: encode_execution_state(state),
            NodeKind.TOPOLOGY: encode_plan(definition),
            NodeKind.KEYS: encode_keys(TopologyKeys(*pairs)),
            NodeKind.PACKING_PLAN: encode_plan(packing),
        }.items():
            self.nodes.write((kind, _TOPOLOGY), value)
        author = self._folder / "author"
        author.mkdir()
        (author / "nothing.py").write_text('"""The components are in heron_testing.seeded.workload."""\n')
        pack(author, ["nothing.py"], PackageManifest(_TOPOLOGY, "nothing", {}), self._folder / "package")

    def _container(self, container_id: int) -> Container:
        run_dir = self._folder / "r"
        spec = ContainerSpec(
            _TOPOLOGY,
            _RUN,
            container_id,
            1,
            str(run_dir),
            str(self._folder / "log"),
            str(self._folder / "package"),
            DriverRef("statemgr", "seeded", f"{_STORES}:SimulatedStates"),
            DriverRef("uploader", "seeded", f"{_STORES}:SimulatedPackages"),
            checkpoint=DriverRef("checkpoint", "seeded", f"{_STORES}:SimulatedCheckpoints")
            if self._scenario.with_state
            else None,
            settings={
                "heron.instance.long.call.s": 0.0,
                "heron.metrics.export.s": 10.0,
                "topology.tmanager.standbys": 1,
            },
        )
        (self._folder / "log").mkdir(exist_ok=True)
        return Container(self.processes, lambda attempt: replace(spec, attempt=attempt), container_id)


class _Notes(logging.Handler):
    """Adds what the roles log to the trace, without the paths of this run."""

    def __init__(self, world: World, folder: Path) -> None:
        super().__init__(logging.INFO)
        self._world = world
        self._folder = str(folder)

    def emit(self, record: logging.LogRecord) -> None:
        process = self._world.process
        text = record.getMessage().replace(self._folder, "RUN")
        self._world.remark(f"{process.name if process is not None else '-'}: {record.levelname} {text}")


class _Printed(io.TextIOBase):
    """Adds what the roles print to the trace."""

    def __init__(self, world: World) -> None:
        self._world = world

    def write(self, text: str) -> int:
        process = self._world.process
        if process is not None and text.strip():
            self._world.remark(f"{process.name} prints: {text.strip()}")
        return len(text)
