"""Starts the roles as simulated processes: the real executor starts its processes, whose main functions run here."""

from __future__ import annotations

import itertools
import signal
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING

from heron.driver_kit.parent_process import END_NOTE, EXIT_TEMPORARY, EXIT_USER_INIT
from heron.driver_kit.process_starter import ProcessStarter, StartedProcess
from heron.errors import HeronError, StateError
from heron.executor.container_run import execute
from heron.instance.main import process as run_instance
from heron.kernel.role_spec import InstanceSpec, MetricsmgrSpec, StmgrSpec, TManagerSpec, read_spec
from heron.metricsmgr.main import gather
from heron.stmgr.main import route
from heron.tmanager.main import manage
from heron_testing.seeded.process import SimulatedHost, SimulatedMachine, SimulatedProcess

if TYPE_CHECKING:
    from heron.spi.scheduler import ContainerSpec
    from heron_testing.seeded.invariants import RoleChecks
    from heron_testing.seeded.network import Network
    from heron_testing.seeded.stores import Nodes
    from heron_testing.seeded.world import World

__all__ = ["Container", "RoleProcesses"]

_BACKOFF_S = (0.1, 1.0)  # of the scheduler before it starts a container again


class RoleProcesses:
    """All processes of a run, by name; a name has one living process at a time."""

    def __init__(self, world: World, network: Network, nodes: Nodes, checks: RoleChecks) -> None:
        self.world = world
        self.network = network
        self.nodes = nodes
        self.checks = checks
        self.living: dict[str, SimulatedProcess] = {}
        self.crashes: list[str] = []
        self._numbers = itertools.count()

    def start(self, host: SimulatedHost, name: str, run: Callable[[SimulatedProcess], int]) -> SimulatedProcess:
        """Starts a process; `run` is its main function."""
        process = SimulatedProcess(self.world, self.network, host, name, next(self._numbers))
        self.living[name] = process
        self.world.note(f"{name} starts")
        process.at_end.append(partial(self._ended, process))
        process.run_main(partial(self._main, process, run), self.world.draw.uniform(0.02, 0.15))
        return process

    def abandon(self) -> None:
        """Ends all processes; the run is over."""
        for process in tuple(self.living.values()):
            process.at_end.clear()
            process.kill()

    def _main(self, process: SimulatedProcess, run: Callable[[SimulatedProcess], int]) -> int:
        try:
            return run(process)
        except StateError as error:
            self.world.note(f"{process.name}: {type(error).__name__}")
            return EXIT_TEMPORARY
        except HeronError as error:
            self.world.note(f"{process.name}: {type(error).__name__}")
            return 1
        except SystemExit as error:
            return int(error.code or 0)
        except Exception as error:  # a fault of the engine, which is a problem of the run
            if process.killed:
                return 1  # what the end of its threads has caused
            self.crashes.append(f"{process.name} ended by {type(error).__name__}: {error}")
            self.world.note(self.crashes[-1])
            return 1

    def _ended(self, process: SimulatedProcess) -> None:
        if self.living.get(process.name) is process:
            del self.living[process.name]
            self.checks.ended(process.name)
        # A store learns of an end at once, or when the session expires.
        delay_s = 0.0 if self.world.draw.random() < 0.5 else self.nodes.lease_s
        self.world.after(delay_s, lambda: self.nodes.expire(process))


class Container:
    """A container and its scheduler: starts the executor, and starts it again until it says that it has ended."""

    def __init__(self, processes: RoleProcesses, spec: Callable[[int], ContainerSpec], container_id: int) -> None:
        """`spec` returns the spec of an attempt."""
        self._processes = processes
        self._spec = spec
        self.container_id = container_id
        self.host = SimulatedHost(f"c{container_id}")
        self.attempt = 0
        self.has_ended = False
        self.on_end: Callable[[], None] = lambda: None

    def start(self) -> None:
        """Starts an attempt."""
        self.attempt += 1
        spec = self._spec(self.attempt)
        starter = _Starter(self._processes, self.host)

        def run(process: SimulatedProcess) -> int:
            starter.parent = process
            return execute(spec, process.signals, starter=starter, machine=SimulatedMachine(process))

        process = self._processes.start(self.host, f"c{self.container_id}/executor", run)
        process.at_end.append(starter.kill_children)
        process.at_end.append(lambda: self._ended(process))

    def _ended(self, process: SimulatedProcess) -> None:
        if process.exit_code == 0:
            self.has_ended = True
            self.on_end()
        else:
            self._processes.world.after(self._processes.world.draw.uniform(*_BACKOFF_S), self.start)


class _Child(StartedProcess):
    def __init__(self, process: SimulatedProcess) -> None:
        self._process = process
        self.pid = process.pid

    def poll(self) -> int | None:
        return self._process.exit_code

    def wait(self) -> int:
        world = self._process.world
        while self._process.exit_code is None:
            assert world.current is not None
            world.current.sleep(0.001)
        return self._process.exit_code

    def terminate(self) -> None:
        self._process.signals.send(signal.SIGTERM)

    def kill(self) -> None:
        self._process.world.after(1e-5, self._process.kill)


class _Starter(ProcessStarter):
    """Starts the processes of one executor in the simulation."""

    def __init__(self, processes: RoleProcesses, host: SimulatedHost) -> None:
        super().__init__()
        self.obstacle = ""
        self.parent: SimulatedProcess | None = None
        self._processes = processes
        self._host = host
        self._children: list[SimulatedProcess] = []

    def start(self, argv: Sequence[str], output: IO[bytes]) -> StartedProcess:
        del output
        module, path = argv[-2], Path(argv[-1])
        name = f"{self._host.name}/{path.stem}"
        process = self._processes.start(self._host, name, partial(_MAINS[module], path, self._processes.checks))
        self._children = [*(each for each in self._children if each.exit_code is None), process]
        process.at_end.append(lambda: self._ended(process, path))
        return _Child(process)

    def kill_children(self) -> None:
        """The parent is gone: the kernel kills its children."""
        for each in self._children:
            self._processes.world.after(self._processes.world.draw.uniform(0.0, 1e-3), each.kill)

    def _ended(self, process: SimulatedProcess, path: Path) -> None:
        if process.exit_code in (EXIT_TEMPORARY, EXIT_USER_INIT) and path.parent.is_dir():
            path.with_suffix(END_NOTE).touch(mode=0o600)
        if self.parent is not None and self.parent.exit_code is None:
            self.parent.signals.send(signal.SIGCHLD)


def _tmanager(path: Path, _checks: RoleChecks, process: SimulatedProcess) -> int:
    return manage(read_spec(path, TManagerSpec), process.signals, SimulatedMachine(process))


def _stmgr(path: Path, checks: RoleChecks, process: SimulatedProcess) -> int:
    read, started = partial(read_spec, path, StmgrSpec), partial(checks.stmgrs.__setitem__, process.name)
    return route(read(), read, process.signals, SimulatedMachine(process), started)


def _metricsmgr(path: Path, _checks: RoleChecks, process: SimulatedProcess) -> int:
    read = partial(read_spec, path, MetricsmgrSpec)
    return gather(read(), read, process.signals, SimulatedMachine(process))


def _instance(path: Path, checks: RoleChecks, process: SimulatedProcess) -> int:
    spec, started = read_spec(path, InstanceSpec), partial(checks.tasks.__setitem__, process.name)
    return run_instance(spec, process.signals, SimulatedMachine(process), started)


_MAINS: dict[str, Callable[[Path, RoleChecks, SimulatedProcess], int]] = {
    "heron.tmanager.main": _tmanager,
    "heron.stmgr.main": _stmgr,
    "heron.metricsmgr.main": _metricsmgr,
    "heron.instance.main": _instance,
}
