"""``processes.json``: who runs for a job and what became of each container, for those who come after the supervisor."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass

from heron.driver_kit.child_processes import ProcessIdentity
from heron.driver_kit.private_files import write_private
from heron_scheduler_kit.job_folder import JobFolder

__all__ = ["ContainerEntry", "ProcessList"]


@dataclass(frozen=True, slots=True)
class ContainerEntry:
    """A container; `pid` is 0 when it does not run."""

    container_id: int
    attempts: int
    last_error: str = ""
    pid: int = 0
    start: str = ""


@dataclass(frozen=True, slots=True)
class ProcessList:
    """The supervisor and the containers as last written."""

    supervisor: ProcessIdentity
    containers: tuple[ContainerEntry, ...]

    def write(self, folder: JobFolder) -> None:
        write_private(folder.processes_file, json.dumps(asdict(self)).encode())

    @classmethod
    def read(cls, folder: JobFolder) -> ProcessList | None:
        """None when there is none: the supervisor had not started anything."""
        try:
            fields = json.loads(folder.processes_file.read_bytes())
            containers = tuple(ContainerEntry(**each) for each in fields["containers"])
            return cls(ProcessIdentity(**fields["supervisor"]), containers)
        except (OSError, ValueError, TypeError, KeyError):
            return None

    def executors(self) -> Iterable[ProcessIdentity]:
        return (ProcessIdentity(each.pid, each.start) for each in self.containers if each.pid)
