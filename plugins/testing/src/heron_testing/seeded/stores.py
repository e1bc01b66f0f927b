"""The simulated state manager, checkpoint store and package store: drivers that roles open as they open any other.

A call takes time before and after its effect, so other processes act in between, and a process may die in either part.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Self

from heron.checkpoints.manifest import decode_manifest
from heron.errors import CheckpointError, StateConflictError, StateUnavailableError
from heron.planner.physical_plan import PhysicalPlan
from heron.spi.checkpoint import CheckpointStore, StoredObject
from heron.spi.statemgr import Hold, NodeKind, StateManager, Versioned, Watch
from heron.spi.uploader import Uploader
from heron.state_nodes.plans import decode_physical_plan
from heron_testing.seeded.world import Process, World

__all__ = ["NEW_PACKAGE", "Nodes", "Objects", "SimulatedCheckpoints", "SimulatedPackages", "SimulatedStates", "Site"]

_WATCH_DELAY_S = 0.2


NEW_PACKAGE = "seeded:new"
"""The URI of the package with new code."""


class Site:
    """What the drivers of the present simulation open; one simulation runs at a time."""

    nodes: ClassVar[Nodes]
    objects: ClassVar[Objects]
    package: ClassVar[Path]


def _take(world: World, low_s: float, high_s: float) -> None:
    if world.current is not None:
        world.current.sleep(world.draw.uniform(low_s, high_s))


def _present() -> Process:
    process = World.present.process
    assert process is not None
    return process


class Nodes:
    """The nodes, and the sessions of processes, which end `lease_s` after their process is gone or stopped."""

    def __init__(self, world: World, lease_s: float) -> None:
        self.world = world
        self.lease_s = lease_s
        self.is_away = False
        self.values: dict[tuple[NodeKind, str], Versioned] = {}
        self.versions: dict[tuple[NodeKind, str], int] = {}
        self.holders: dict[tuple[NodeKind, str], _Hold] = {}
        self.watches: list[_Watch] = []
        self.problems: list[str] = []
        self.on_plan: Callable[[PhysicalPlan], None] = lambda _plan: None
        self._plan: tuple[int, int] = (0, 0)

    def write(self, key: tuple[NodeKind, str], value: bytes) -> int:
        """Writes a node."""
        version = self.versions[key] = self.versions.get(key, 0) + 1
        self.values[key] = Versioned(value, version)
        self.world.note(f"node {key[0].value} version {version}")
        if key[0] is NodeKind.PHYSICAL_PLAN:
            self._check_plan(value)
        self._changed(key)
        return version

    def remove(self, key: tuple[NodeKind, str]) -> None:
        """Removes a node."""
        if self.values.pop(key, None) is not None:
            self.versions[key] = self.versions.get(key, 0) + 1
            self.world.note(f"node {key[0].value} is removed")
            self._changed(key)

    def expire(self, process: Process) -> None:
        """Ends the session of a process."""
        for key, hold in tuple(self.holders.items()):
            if hold.process is process:
                hold.is_lost = True
                del self.holders[key]
                self.world.note(f"lease of {process.name} expires")
                self.remove(key)

    def _check_plan(self, value: bytes) -> None:
        """One leader: the epoch of the plan never falls, and its version grows."""
        plan, before = decode_physical_plan(value, "the simulated store"), self._plan
        self._plan = (plan.epoch, plan.version)
        self.on_plan(plan)
        if plan.epoch < before[0] or plan.version < before[1]:
            self.problems.append(
                f"at {self.world.now_s:.3f} s: plan {plan.version} of epoch {plan.epoch} replaces plan {before[1]} "
                f"of epoch {before[0]}"
            )

    def _changed(self, key: tuple[NodeKind, str]) -> None:
        for watch in self.watches:
            if watch.key == key:
                self.world.after(self.world.draw.uniform(1e-4, _WATCH_DELAY_S), watch.tell)


class _Hold(Hold):
    def __init__(self, nodes: Nodes, key: tuple[NodeKind, str], process: Process, epoch: int) -> None:
        self._nodes = nodes
        self.key = key
        self.process = process
        self._epoch = epoch
        self.is_lost = False

    @property
    def epoch(self) -> int:
        return self._epoch

    def lost(self) -> bool:
        return self.is_lost

    def release(self) -> None:
        if self._nodes.holders.get(self.key) is self:
            del self._nodes.holders[self.key]
            self._nodes.remove(self.key)


class _Watch(Watch):
    def __init__(
        self,
        nodes: Nodes,
        key: tuple[NodeKind, str],
        process: Process,
        on_change: Callable[[Versioned | None], None],
    ) -> None:
        self._nodes = nodes
        self.key = key
        self._process = process
        self._on_change = on_change
        self._told: Versioned | None = None

    def tell(self) -> None:
        """Reports the present value, unless the store is away: then later."""
        if self._nodes.is_away:
            self._nodes.world.after(0.5, self.tell)
        elif self in self._nodes.watches:
            self._process.deliver(self._report)

    def first(self) -> None:
        """Reports the present value on the thread of the caller."""
        self._told = self._nodes.values.get(self.key)
        self._on_change(self._told)

    def _report(self) -> None:
        present = self._nodes.values.get(self.key)
        if present != self._told:
            self._told = present
            self._on_change(present)

    def close(self) -> None:
        if self in self._nodes.watches:
            self._nodes.watches.remove(self)


class SimulatedStates(StateManager):
    """The state manager of one process."""

    spi_version: ClassVar[int] = 1

    def __init__(self) -> None:
        self._nodes = Site.nodes
        self._process = _present()

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Opens the store of the present simulation."""
        del options
        return cls()

    def get(self, kind: NodeKind, topology: str) -> Versioned | None:
        """The node."""
        self._ask()
        found = self._nodes.values.get((kind, topology))
        self._answer()
        return found

    def set(self, kind: NodeKind, topology: str, value: bytes, *, expected: int | None = None) -> int:
        """Writes the node."""
        self._ask()
        self._expect((kind, topology), expected)
        version = self._nodes.write((kind, topology), value)
        self._answer()
        return version

    def delete(self, kind: NodeKind, topology: str, *, expected: int | None = None) -> None:
        """Removes the node."""
        self._ask()
        self._expect((kind, topology), expected)
        self._nodes.remove((kind, topology))
        self._answer()

    def list(self, kind: NodeKind) -> tuple[str, ...]:
        """The topologies that have it."""
        self._ask()
        return tuple(sorted(topology for each, topology in self._nodes.values if each is kind))

    def watch(self, kind: NodeKind, topology: str, on_change: Callable[[Versioned | None], None]) -> Watch:
        """Watches the node."""
        self._ask()
        watch = _Watch(self._nodes, (kind, topology), self._process, on_change)
        self._nodes.watches.append(watch)
        watch.first()
        return watch

    def hold(self, kind: NodeKind, topology: str, value: bytes) -> Hold:
        """Holds the node."""
        self._ask()
        key = (kind, topology)
        if key in self._nodes.holders:
            message = f"node {kind.value} of {topology!r} is held by {self._nodes.holders[key].process.name}"
            raise StateConflictError(message)
        hold = _Hold(self._nodes, key, self._process, self._nodes.write(key, value))
        self._nodes.holders[key] = hold
        self._answer()
        return hold

    def close(self) -> None:
        """Ends the session."""
        for hold in tuple(self._nodes.holders.values()):
            if hold.process is self._process:
                hold.release()
        self._nodes.watches = [each for each in self._nodes.watches if each._process is not self._process]

    def _ask(self) -> None:
        _take(self._nodes.world, 5e-5, 1e-3)
        self._check()

    def _answer(self) -> None:
        _take(self._nodes.world, 5e-5, 1e-3)
        self._check()

    def _check(self) -> None:
        if self._nodes.is_away:
            message = "the simulated store is away"
            raise StateUnavailableError(message)

    def _expect(self, key: tuple[NodeKind, str], expected: int | None) -> None:
        present = self._nodes.values.get(key)
        version = present.version if present is not None else 0
        if expected is not None and version != expected:
            message = f"node {key[0].value} has version {version}, not {expected}"
            raise StateConflictError(message)


class Objects:
    """What the checkpoint store has. It takes nothing from `full` machines ("": from all), and calls take `slow_s`."""

    def __init__(self) -> None:
        self.data: dict[str, bytes] = {}
        self.full: set[str] = set()
        self.slow_s = 0.0

    def be_fast(self) -> None:
        """Calls take their usual time again."""
        self.slow_s = 0.0

    def refuses(self) -> bool:
        """Whether it takes nothing from the present machine."""
        return bool(self.full) and not self.full.isdisjoint(("", _present().machine.name))

    def missing(self, checkpoint: int) -> list[str]:
        """What a checkpoint needs and the store does not have: its manifest, or objects that the manifest names."""
        manifest = next((each for each in self.data if each.endswith(f"/{checkpoint:010}/manifest")), None)
        if manifest is None:
            return [f"the manifest of checkpoint {checkpoint}"]
        return sorted(set(decode_manifest(self.data[manifest], manifest).objects()) - self.data.keys())


class SimulatedCheckpoints(CheckpointStore):
    """The checkpoint store."""

    spi_version: ClassVar[int] = 1

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Opens the store of the present simulation."""
        del options
        return cls()

    def store(self, name: str, data: bytes) -> None:
        """Keeps the object."""
        _take(World.present, 1e-4, 1e-2 + Site.objects.slow_s)
        if Site.objects.refuses():
            message = f"checkpoint object {name}: no space left on the simulated disk"
            raise CheckpointError(message)
        Site.objects.data[name] = data
        _take(World.present, 1e-5, 1e-3 + Site.objects.slow_s)

    def load(self, name: str, start: int = 0, size_bytes: int | None = None) -> bytes:
        """The range."""
        _take(World.present, 1e-4, 5e-3 + Site.objects.slow_s)
        if name not in Site.objects.data:
            message = f"checkpoint object {name}: does not exist"
            raise CheckpointError(message)
        data = Site.objects.data[name]
        return data[start:] if size_bytes is None else data[start : start + size_bytes]

    def list(self, prefix: str) -> tuple[StoredObject, ...]:
        """The objects below the prefix."""
        _take(World.present, 1e-4, 5e-3 + Site.objects.slow_s)
        found = (each for each in sorted(Site.objects.data) if each.startswith(f"{prefix}/"))
        return tuple(StoredObject(each, len(Site.objects.data[each]), 0.0) for each in found)

    def dispose(self, names: Iterable[str]) -> None:
        """Forgets the objects."""
        for name in names:
            _take(World.present, 1e-5, 1e-3)
            Site.objects.data.pop(name, None)


class SimulatedPackages(Uploader):
    """The package is a file of the simulation's folder."""

    spi_version: ClassVar[int] = 1

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        """Needs no option."""
        del options
        return cls()

    def upload(self, package: Path, name: str) -> str:
        """The package stays where it is."""
        del name
        return str(package)

    def undo(self, uri: str) -> None:
        """Nothing was stored."""

    def download(self, uri: str, target: Path) -> None:
        """Copies the package; new code has the same files."""
        _take(World.present, 1e-4, 5e-2)
        shutil.copyfile(Site.package if uri == NEW_PACKAGE else uri, target)
