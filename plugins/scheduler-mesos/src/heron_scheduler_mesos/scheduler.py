"""The scheduler driver ``mesos``: runs each job as a framework of Mesos."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Self

from heron.errors import SchedulerError, known
from heron.spi.options import decode_options
from heron.spi.scheduler import ContainerSpec, Job, JobStatus, SchedulerState
from heron.spi.statemgr import StateManager
from heron_scheduler_kit.job_folder import JobFolder, JobRecord
from heron_scheduler_kit.managed.container_records import ContainerRecords
from heron_scheduler_kit.sealing import SealKey
from heron_scheduler_kit.supervised_scheduler import SupervisedScheduler
from heron_scheduler_mesos.framework import forget_ended, framework_info, read_ended, read_framework
from heron_scheduler_mesos.mesos_access import find_access
from heron_scheduler_mesos.options import MesosOptions
from heron_scheduler_mesos.sandbox import read_output
from heron_scheduler_mesos.visit import visit

__all__ = ["MesosScheduler"]

_OFFERS_S = 3.0  # a master offers once a second
_VISIT_S = 4.0


class MesosScheduler(SupervisedScheduler):
    """Runs each job as a framework. Its containers outlive a supervisor that dies, which `restart` starts again."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"avoid", "attached", "output", "restart", "server", "update"})
    options_type: ClassVar[type] = MesosOptions
    supervisor: ClassVar[str] = "heron_scheduler_mesos.supervisor"
    end_s: ClassVar[float] = 4.0  # a framework is torn down last
    listen_s: ClassVar[float] = 8.0  # its supervisor imports an HTTP library

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(decode_options(options, MesosOptions, "scheduler"))

    def __init__(self, options: MesosOptions) -> None:
        super().__init__(options)
        self._mesos = options
        self._statemgr: StateManager | None = None

    def use_state(self, statemgr: StateManager) -> None:
        self._statemgr = statemgr

    def refuse(self, job: Job) -> None:
        del job
        self._key()
        find_access(self._mesos)

    def check(self, timeout_s: float) -> str:
        key = self._key()
        record = JobRecord("check", "", False, (), "", (), 0.0, 0.0, 0.0, 0.0)
        framework = framework_info(record, self._mesos, "")
        master, offers = visit(find_access(self._mesos), framework, timeout_s, min(_OFFERS_S, timeout_s))
        agents = known({each.place.host for each in offers}) if offers else f"none within {_OFFERS_S:g} s"
        return f"Mesos at {master}, role {self._mesos.role}, key {key.id}; offers of agents: {agents}"

    def restart(self, topology: str, container_id: int) -> None:
        self._key()
        self.resume(topology)
        super().restart(topology, container_id)

    def update(self, topology: str, add: Sequence[ContainerSpec], remove: Sequence[int]) -> None:
        self._key()
        self.resume(topology)
        super().update(topology, add, remove)

    def kill(self, topology: str, topology_id: str = "") -> None:
        folder = self._folder(topology)
        mine = topology_id or folder.topology_id()
        is_here = not folder.is_of_another(topology_id)
        super().kill(topology, topology_id)
        if is_here:
            forget_ended(folder)
        if self._statemgr is not None and mine and is_here:
            ContainerRecords(self._statemgr, mine).remove()

    def status(self, topology: str) -> JobStatus:
        found = super().status(topology)
        if found.state is not SchedulerState.FAILED:
            return found
        framework = read_framework(self._folder(topology))
        if framework is None or not framework.framework_id:
            return found
        again = f"its supervisor has ended, and its containers run on; `heron restart {topology}` starts the supervisor"
        containers = tuple(replace(each, last_error=again) for each in found.containers)
        return replace(found, state=SchedulerState.RUNNING, containers=containers)

    def output(self, topology: str, container_id: int, lines: int) -> Sequence[str]:
        folder = self._folder(topology)
        found = read_framework(folder) if folder.path.is_dir() else read_ended(folder)
        tasks = {each.container_id: each for each in found.tasks} if found is not None else {}
        if found is None or container_id not in tasks:
            msg = f"topology {topology!r} has no container {container_id} here; it has {known(map(str, tasks))}"
            raise SchedulerError(msg)
        task = tasks[container_id]
        return read_output(find_access(self._mesos), task, lines) if task.agent else []

    def end_remains(self, folder: JobFolder) -> None:
        found, record = read_framework(folder), folder.read_job()
        if found is not None and record is not None and found.framework_id:
            visit(find_access(self._mesos), framework_info(record, self._mesos, found.framework_id), _VISIT_S)
        super().end_remains(folder)

    def _key(self) -> SealKey:
        return SealKey.read(Path(self._mesos.key_file).expanduser())
