"""The executors of a job as children of its supervisor."""

from __future__ import annotations

import json
import logging
import selectors
import signal
import sys

from heron.driver_kit.child_processes import ProcessIdentity
from heron.driver_kit.fork_server import can_fork
from heron.driver_kit.private_files import write_private
from heron.driver_kit.process_starter import PROCESS_START, ProcessStarter
from heron_scheduler_kit.executor_process import ExecutorProcess
from heron_scheduler_kit.executors import Executors, Exit, Placement
from heron_scheduler_kit.job_folder import JobFolder, JobRecord

__all__ = ["LocalExecutors"]

_log = logging.getLogger(__name__)

# -P: a file in the user's folder must not replace a module of Heron.
_EXECUTOR = (sys.executable, "-P", "-m", "heron.executor.main")
_CONTAINER = "{container}"  # in the command: the id of the container


class LocalExecutors(Executors):
    """Owns the processes; the end of a process wakes the supervisor by SIGCHLD."""

    def __init__(
        self,
        folder: JobFolder,
        record: JobRecord,
        selector: selectors.BaseSelector,
        starter: ProcessStarter | None = None,
    ) -> None:
        super().__init__(folder, record, selector)
        self._starter = starter or ProcessStarter(signal.SIGTERM)
        launcher = record.options.get("launcher")
        words = map(str, launcher) if isinstance(launcher, list) else ()
        self._command = (*words, *(record.executor or _EXECUTOR))
        self._running: dict[int, ExecutorProcess] = {}
        if not can_fork([*self._command, ""]):
            self._starter.close("executors start with another command")
        if self._starter.obstacle:
            _log.info("executors start as new programs: %s", self._starter.obstacle)

    def start(self, container_id: int, attempt: int) -> None:
        spec_file = self.folder.spec_file(container_id)
        spec = {**json.loads(spec_file.read_bytes()), "attempt": attempt}
        write_private(spec_file, json.dumps(spec).encode())
        command = [word.replace(_CONTAINER, str(container_id)) for word in self._command]
        if spec["settings"].get(PROCESS_START) == "exec":
            self._starter.close(f"{PROCESS_START} is exec")
        self._running[container_id] = ExecutorProcess(command, spec_file, spec, self._starter)

    def terminate(self, container_id: int) -> None:
        if running := self._running.get(container_id):
            running.terminate()

    def kill(self, container_id: int) -> None:
        if running := self._running.get(container_id):
            running.kill()

    def reap(self) -> tuple[Exit, ...]:
        exits: list[Exit] = []
        for container_id, running in list(self._running.items()):
            error = running.ended()
            if error is not None:
                del self._running[container_id]
                exits.append(Exit(container_id, error, running.at_fault))
        return tuple(exits)

    def placement(self, container_id: int) -> Placement:
        return Placement(container_id in self._running)

    def identity(self, container_id: int) -> ProcessIdentity | None:
        running = self._running.get(container_id)
        return running.identity if running else None

    def close(self) -> None:
        for running in self._running.values():
            running.kill_now()
        self._running.clear()
        self._starter.close()
