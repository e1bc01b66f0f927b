"""One run of an author's topology, in a fork, and what it left."""

from __future__ import annotations

import random
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from types import ModuleType
from typing import TYPE_CHECKING

from heron.api.api_constants import TOPOLOGY_COMPONENT_OUTPUT_BPS
from heron.api.definition import ComponentKind
from heron.ipc.documents.status import TopologyStatus
from heron.kernel.manifest import read_manifest
from heron.kernel.package import unpack
from heron.spi.statemgr import NodeKind
from heron.state_nodes.report import decode_report
from heron_testing.seeded.authors.effects import Effects
from heron_testing.seeded.cluster import Cluster, Program
from heron_testing.seeded.faults import Fault, Faults
from heron_testing.seeded.world import Process, World

if TYPE_CHECKING:
    from heron.instance.task import Task

__all__ = ["Left", "paced", "run_once"]

_PACED_S = 3.0
"""How long the spouts emit: a simulated machine takes no time for user code, and faults must come meanwhile."""
_BATCHES = 100
_LARGEST = 10_000  # values in an attribute


@dataclass(frozen=True, slots=True)
class Left:
    """What a run left. `attributes` are those of each component object when its task ends, by component and index."""

    state: str
    lasted_s: float
    problems: tuple[str, ...] = ()
    errors: tuple[str, ...] = ()
    files: Mapping[str, Counter[str]] = field(default_factory=dict)
    printed: Counter[str] = field(default_factory=Counter)
    attributes: Mapping[tuple[str, int], Mapping[str, object]] = field(default_factory=dict)
    connections: frozenset[str] = frozenset()
    sent_bytes: Mapping[str, int] = field(default_factory=dict)
    """The data that each component sent."""
    emitted: Mapping[str, int] = field(default_factory=dict)
    """The tuples that each component emitted."""


def paced(program: Program, left: Left) -> Program:
    """The program with spouts that need some seconds, and a hundred batches, for what they emitted without a limit."""
    definition = program.definition
    spouts = {each.name: each for each in definition.components if each.kind is ComponentKind.SPOUT}
    rows = min((left.emitted.get(name, 0) // each.parallelism for name, each in spouts.items()), default=0)
    paces = {name: max(1, round(left.sent_bytes.get(name, 0) / _PACED_S)) for name in spouts}
    components = tuple(
        replace(each, config={TOPOLOGY_COMPONENT_OUTPUT_BPS: paces[each.name], **each.config})
        if each.name in paces
        else each
        for each in definition.components
    )
    settings = {**program.settings, "heron.instance.batch.rows": max(1, rows // _BATCHES)}
    return replace(program, definition=replace(definition, components=components), settings=settings)


def run_once(program: Program, seed: int, faults: tuple[Fault, ...], limit_s: float) -> Left:
    """Runs the program in this process, which must be a fork."""
    random.seed(seed)
    with tempfile.TemporaryDirectory(prefix="hs-") as name:
        return _ProgramRun(program, seed, Path(name)).run(faults, limit_s)


class _ProgramRun:
    def __init__(self, program: Program, seed: int, folder: Path) -> None:
        self._world = World.present = World(seed)
        self._cluster = Cluster(self._world, program, folder)
        self._components = {each.task_id: each for _, each in program.packing.instances()}
        self._effects = Effects(folder, self._task_name)
        self._attributes: dict[tuple[str, int], dict[str, object]] = {}
        self._errors: list[str] = []
        self._modules = _ProcessModules(program.package, folder)
        self._world.on_enter = self._modules.enter
        self._cluster.checks.on_task_end = self._task_ended

    def run(self, faults: tuple[Fault, ...], limit_s: float) -> Left:
        """Runs to the end, and puts the files back."""
        world, cluster = self._world, self._cluster
        cluster.start()
        carried = Faults(cluster)
        for each in faults:
            carried.schedule(each)
        last_s = max((each.at_s + each.lasts_s for each in faults), default=0.0)
        cluster.checks.quiet_s = last_s
        cluster.checks.sessions += sum(each.ends_sessions for each in faults)
        try:
            with cluster.logging(whole=False), self._effects.watched():
                world.run(last_s + limit_s)
                cluster.processes.abandon()
        finally:
            files = self._effects.take_files()
        status = self._status()
        return Left(
            status.state if status is not None else "running",
            world.now_s,
            tuple(cluster.problems()),
            (status.error,) if status is not None and status.error else (),
            files,
            self._effects.printed,
            self._attributes,
            frozenset(self._effects.connections),
            self._sent_bytes(),
            {each.name: each.emitted for each in status.components} if status is not None else {},
        )

    def _status(self) -> TopologyStatus | None:
        """The last status; None if the topology has not ended."""
        node = self._cluster.nodes.values.get((NodeKind.REPORT, self._cluster.topology))
        return decode_report(node.value, "the simulated store").status if node and self._world.is_over else None

    def _sent_bytes(self) -> dict[str, int]:
        found: Counter[str] = Counter()
        for name, size in self._cluster.network.sent_bytes.items():
            component = name.partition("/")[2].rpartition("-")[0]
            found[component] += size
        return dict(found)

    def _task_name(self) -> str:
        """The task that runs now; the engine's own processes write nothing of an author."""
        process = self._world.process
        name = process.name if process is not None else ""
        task = name.rpartition("-")[2]
        return name if task.isdigit() and int(task) in self._components else ""

    def _task_ended(self, task: Task) -> None:
        component, place = task.gateway.inspected.component, self._components.get(task.spec.task_id)
        if component is None or place is None:
            return
        own = {name: value for name, value in vars(component).items() if not name.startswith("_")}
        plain = {name: value for name, value in own.items() if _is_plain(value)}
        self._attributes[place.component, place.component_index] = plain


class _ProcessModules:
    """The modules of the author's package, which each process imports for itself."""

    def __init__(self, package: Path, folder: Path) -> None:
        unpacked = folder / "names"
        unpack(package, unpacked)
        files = (PurePosixPath(each) for each in read_manifest(unpacked).files if each.endswith(".py"))
        self._names = ("__main__", *sorted({".".join(each.with_suffix("").parts) for each in files}))
        self._of: dict[Process, dict[str, ModuleType]] = {}
        self._present: Process | None = None

    def enter(self, process: Process) -> None:
        """From now on this process runs."""
        if process is self._present:
            return
        if self._present is not None:
            self._of[self._present] = {each: sys.modules[each] for each in self._names if each in sys.modules}
        for each in self._names:
            sys.modules.pop(each, None)
        sys.modules.update(self._of.get(process, {}))
        self._present = process


def _is_plain(value: object, most: int = _LARGEST) -> bool:
    """Whether a value is compared: numbers, texts, and collections of them."""
    if value is None or isinstance(value, bool | int | float | str | bytes):
        return True
    if isinstance(value, Mapping):
        return len(value) <= most and all(_is_plain(part) for pair in value.items() for part in pair)
    if isinstance(value, list | tuple | set | frozenset | deque):
        return len(value) <= most and all(map(_is_plain, value))
    return False
