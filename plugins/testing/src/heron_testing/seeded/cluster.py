"""A topology on simulated machines: its containers, stores and network, from its submission to its end."""

from __future__ import annotations

import contextlib
import io
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from heron.api.config import takes_checkpoints
from heron.api.definition import TopologyDefinition
from heron.ipc.keys import KeyPair, TopologyKeys
from heron.planner.packing_plan import PackingPlan
from heron.spi.driver import DriverRef
from heron.spi.scheduler import ContainerSpec
from heron.spi.statemgr import NodeKind
from heron.state_nodes.execution_state import ExecutionState, encode_execution_state
from heron.state_nodes.plans import decode_packing_plan, decode_physical_plan, encode_plan
from heron.state_nodes.topology_keys import encode_keys
from heron_testing.seeded.invariants import RoleChecks
from heron_testing.seeded.network import Network
from heron_testing.seeded.roles import Container, RoleProcesses
from heron_testing.seeded.stores import Nodes, Objects, Site
from heron_testing.seeded.world import World

__all__ = ["Cluster", "Program"]

_STORES = "heron_testing.seeded.stores"
_LEASE_S = 3.0


@dataclass(frozen=True, slots=True)
class Program:
    """A topology, its packing plan and its packed files; `settings` are those of the engine, by key."""

    definition: TopologyDefinition
    packing: PackingPlan
    package: Path
    settings: Mapping[str, object] = field(default_factory=dict)
    drivers: tuple[DriverRef, ...] = ()
    """The serializers and state backends that components name."""


class Cluster:
    """One run of a program; every machine has one container."""

    def __init__(self, world: World, program: Program, folder: Path) -> None:
        """`folder` is empty, and stays until the run is over."""
        self.world = world
        self.network = Network(world)
        self.nodes = Site.nodes = Nodes(world, lease_s=_LEASE_S)
        self.objects = Site.objects = Objects()
        Site.package = program.package
        self.checks = RoleChecks(world, program.settings, self.objects)
        self.nodes.on_plan = self.checks.plan_written
        self.processes = RoleProcesses(world, self.network, self.nodes, self.checks)
        self.topology = program.definition.name
        self._program = program
        self._folder = folder
        numbers = (0, *(each.container_id for each in program.packing.containers))
        self.containers = [self._container(each) for each in numbers]

    def start(self) -> None:
        """Submits the topology; its containers start when the world runs."""
        self._submit()
        for each in self.containers:
            each.on_end = self._container_ended
            self.world.after(self.world.draw.uniform(0.0, 0.05), each.start)
        self.checks.begin()

    @contextmanager
    def logging(self, *, whole: bool) -> Iterator[None]:
        """What the roles log and print is part of the trace; `whole`: also what is below an error."""
        log, logger = _Notes(self.world, self._folder), logging.getLogger("heron")
        logger.propagate = False
        logger.setLevel(logging.INFO if whole else logging.CRITICAL)
        logger.addHandler(log)
        try:
            with contextlib.redirect_stderr(_Printed(self.world)):
                yield
        finally:
            logger.removeHandler(log)

    def problems(self) -> list[str]:
        """What has gone wrong, whatever the topology does."""
        return [*self.processes.crashes, *self.nodes.problems, *self.checks.problems, *self._packages()]

    def _packages(self) -> list[str]:
        """Outside of a change, all tasks have one package."""
        plan, packing = (
            self.nodes.values.get((kind, self.topology)) for kind in (NodeKind.PHYSICAL_PLAN, NodeKind.PACKING_PLAN)
        )
        if plan is None or packing is None:
            return []
        written = decode_physical_plan(plan.value, self.topology)
        instances = decode_packing_plan(packing.value, self.topology).instances()
        found = {each.package for _, each in instances}
        mixed = written.code is None and found != {written.package}
        return [f"the tasks have the packages {sorted(found)}, and the plan {written.package!r}"] if mixed else []

    def _container_ended(self) -> None:
        self.world.is_over = all(each.has_ended for each in self.containers)

    def _submit(self) -> None:
        definition, name = self._program.definition, self.topology
        state = ExecutionState(name, f"{name}-1", 0.0, "user", "host", "seeded", "", "", "", attached=False)
        pairs = (KeyPair(f"{each}" * 40, f"{each.upper()}" * 40) for each in "smcr")
        for kind, value in {
            NodeKind.EXECUTION_STATE: encode_execution_state(state),
            NodeKind.TOPOLOGY: encode_plan(definition),
            NodeKind.KEYS: encode_keys(TopologyKeys(*pairs)),
            NodeKind.PACKING_PLAN: encode_plan(self._program.packing),
        }.items():
            self.nodes.write((kind, name), value)

    def _container(self, container_id: int) -> Container:
        program, log_dir = self._program, self._folder / "log"
        name, drivers = program.definition.name, program.drivers
        has_store = takes_checkpoints(program.definition.config)
        spec = ContainerSpec(
            name,
            f"{name}-1",
            container_id,
            1,
            str(self._folder / "r"),
            str(log_dir),
            str(program.package),
            DriverRef("statemgr", "seeded", f"{_STORES}:SimulatedStates"),
            DriverRef("uploader", "seeded", f"{_STORES}:SimulatedPackages"),
            checkpoint=DriverRef("checkpoint", "seeded", f"{_STORES}:SimulatedCheckpoints") if has_store else None,
            settings=dict(program.settings),
            serializers=tuple(each for each in drivers if each.family == "serializer"),
            state_backends=tuple(each for each in drivers if each.family == "state"),
        )
        log_dir.mkdir(exist_ok=True)
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
