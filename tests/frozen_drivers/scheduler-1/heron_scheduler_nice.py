"""The scheduler ``nice``: jobs as processes of this machine that leave the processor to other programs.

This module is also the supervisor process of a job: ``python -m heron_scheduler_nice JOBFILE LOCK_FD READY_FD``.
"""

from __future__ import annotations

import json
import os
import selectors
import sys
from collections.abc import Mapping
from typing import Annotated, ClassVar, Self

import msgspec

from heron.driver_kit.child_processes import ProcessIdentity
from heron.driver_kit.private_files import write_private
from heron.spi.options import decode_options
from heron_scheduler_kit.executor_process import ExecutorProcess
from heron_scheduler_kit.executors import Executors, Exit, Placement
from heron_scheduler_kit.job_folder import JobFolder, JobRecord
from heron_scheduler_kit.options import SupervisedOptions
from heron_scheduler_kit.supervised_scheduler import SupervisedScheduler
from heron_scheduler_kit.supervisor import supervise

_EXECUTOR = (sys.executable, "-P", "-m", "heron.executor.main")


class NiceOptions(SupervisedOptions, frozen=True):
    niceness: Annotated[int, msgspec.Meta(ge=0, le=19)] = 10


class NiceScheduler(SupervisedScheduler):
    """Starts a supervisor for each job."""

    spi_version: ClassVar[int] = 1
    capabilities: ClassVar[frozenset[str]] = frozenset({"attached", "restart", "update"})
    options_type: ClassVar[type] = NiceOptions
    supervisor: ClassVar[str] = __name__

    @classmethod
    def open(cls, options: Mapping[str, object]) -> Self:
        return cls(decode_options(options, NiceOptions, "scheduler"))


class NiceExecutors(Executors):
    """The supervisor is nice, and its children inherit that."""

    def __init__(self, folder: JobFolder, record: JobRecord, selector: selectors.BaseSelector) -> None:
        super().__init__(folder, record, selector)
        niceness = record.options.get("niceness")
        os.setpriority(os.PRIO_PROCESS, 0, niceness if isinstance(niceness, int) else 10)
        self._running: dict[int, ExecutorProcess] = {}

    def start(self, container_id: int, attempt: int) -> None:
        spec_file = self.folder.spec_file(container_id)
        spec = {**json.loads(spec_file.read_bytes()), "attempt": attempt}
        write_private(spec_file, json.dumps(spec).encode())
        self._running[container_id] = ExecutorProcess([*(self.record.executor or _EXECUTOR)], spec_file, spec)

    def terminate(self, container_id: int) -> None:
        if running := self._running.get(container_id):
            running.terminate()

    def kill(self, container_id: int) -> None:
        if running := self._running.get(container_id):
            running.kill()

    def reap(self) -> tuple[Exit, ...]:
        ended = [
            (each, running, error) for each, running in self._running.items() if (error := running.ended()) is not None
        ]
        for container_id, _, _ in ended:
            del self._running[container_id]
        return tuple(Exit(container_id, error, running.at_fault) for container_id, running, error in ended)

    def placement(self, container_id: int) -> Placement:
        return Placement(container_id in self._running)

    def identity(self, container_id: int) -> ProcessIdentity | None:
        running = self._running.get(container_id)
        return running.identity if running else None

    def close(self) -> None:
        for running in self._running.values():
            running.kill_now()
        self._running.clear()


if __name__ == "__main__":
    sys.exit(supervise(NiceExecutors, *sys.argv[1:]))
