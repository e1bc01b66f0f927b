"""A scheduler with one supervisor process per job: it finds the job's folder and sends requests to the supervisor."""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import ClassVar

import msgspec

from heron.clock import monotonic_s, wait_for
from heron.driver_kit.child_processes import ProcessIdentity
from heron.driver_kit.private_files import check_private, make_private_dir
from heron.errors import SchedulerError, known, nearest
from heron.spi.scheduler import (
    ContainerSpec,
    ContainerStatus,
    Job,
    JobLink,
    JobStatus,
    Scheduler,
    SchedulerState,
)
from heron.spi.typed_values import convert_value
from heron_scheduler_kit.control import Message, request
from heron_scheduler_kit.job_folder import JobFolder
from heron_scheduler_kit.launch import launch, start_supervisor
from heron_scheduler_kit.options import SupervisionOptions
from heron_scheduler_kit.process_list import ProcessList, end_orphans

__all__ = ["SupervisedScheduler"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,200}")
_CHANGE_S = 30.0
_ANSWER_S = 5.0
_LISTEN_S = 5.0
_POLL_S = 0.01


class SupervisedScheduler(Scheduler):
    """Runs each job with a supervisor process. All state is in the folder of the job, except the list of children.

    A driver sets `supervisor`, the module of that process, and may override `refuse` and `end_remains`.
    """

    supervisor: ClassVar[str]
    end_s: ClassVar[float] = 1.5
    """Seconds that a supervisor may take to end, beyond the grace time of its executors."""
    listen_s: ClassVar[float] = _LISTEN_S
    """Seconds within which a supervisor listens whose command has died, also on a busy machine."""

    def __init__(self, options: SupervisionOptions) -> None:
        self._options = options
        self._root = Path(os.path.abspath(os.path.expanduser(options.root)))
        self._supervisors: list[subprocess.Popen[bytes]] = []
        self._seen: dict[str, ProcessIdentity] = {}  # the supervisors that have answered `status`, by topology
        self._avoided: tuple[str, ...] = ()

    def avoid_hosts(self, hosts: Sequence[str]) -> None:
        if "avoid" not in self.capabilities:
            super().avoid_hosts(hosts)
        self._avoided = tuple(hosts)

    def schedule(self, job: Job) -> None:
        folder = self._folder(job.topology)
        ids = [spec.container_id for spec in job.containers]
        if not ids or len(set(ids)) != len(ids):
            message = f"topology {job.topology!r}: its containers are {ids}; give at least one, each id once"
            raise SchedulerError(message)
        self.refuse(job)
        lock = self._take(folder)
        try:
            with _closing(lock):
                self.end_remains(folder)  # of an earlier supervisor that was killed
                supervisor = launch(folder, lock, job, self._options, self.supervisor, self._waits, self._avoided)
        except BaseException:
            with contextlib.suppress(SchedulerError):  # the first error says more; `kill` repeats this one
                self.kill(job.topology, job.topology_id)
            raise
        if job.attached:
            self._supervisors.append(supervisor)

    def refuse(self, job: Job) -> None:
        """Raise SchedulerError when the job cannot run; called before anything of it is created."""

    def end_remains(self, folder: JobFolder) -> None:
        """End what a killed supervisor has left, all but the lock, which the caller has. Raises SchedulerError."""
        end_orphans(folder)

    def resume(self, topology: str) -> None:
        """Start the supervisor of a job again if it has ended without the job; for executors that outlive it.

        Raises:
            SchedulerError: when it does not take over.
        """
        folder = self._folder(topology)
        record = folder.read_job()
        if record is None or record.attached or (lock := folder.lock(make=False)) is None:
            return
        with _closing(lock):
            (folder.path / "control").unlink(missing_ok=True)
            start_supervisor(folder, lock, record, self.supervisor, self._waits, self._options.take_over_s)

    def kill(self, topology: str, topology_id: str = "") -> None:
        folder = self._folder(topology)
        if folder.is_of_another(topology_id):
            return
        processes = ProcessList.read(folder)
        with contextlib.suppress(OSError):  # there is no supervisor, or it is ending, or it hangs
            request(folder, {"op": "kill"}, self._options.stop_grace_s + self.end_s)
        lock = self._lock_of_ended(folder, topology_id, self.listen_s)
        if lock is None and processes is not None and folder.path.exists() and not folder.is_of_another(topology_id):
            processes.supervisor.signal(signal.SIGKILL)  # it hangs; its executors end when it dies
            lock = self._lock_of_ended(folder, topology_id, self.end_s)
        if lock is not None:
            try:
                self.end_remains(folder)
                folder.remove()
            finally:
                os.close(lock)
        elif folder.path.exists() and not folder.is_of_another(topology_id):
            message = f"the supervisor of {topology!r} does not end; {folder.processes_file} has its process id"
            raise SchedulerError(message)
        # A job that ended by itself has no folder any more, while the interpreter of its supervisor still ends.
        supervisor = processes.supervisor if processes is not None else self._seen.get(topology)
        if supervisor is not None:
            self._wait_for_exit(supervisor)
        self._reap()

    def restart(self, topology: str, container_id: int) -> None:
        self._ask(topology, {"op": "restart", "container_id": container_id})

    def update(self, topology: str, add: Sequence[ContainerSpec], remove: Sequence[int]) -> None:
        specs = [msgspec.to_builtins(spec) for spec in add]
        try:
            for spec in add:
                make_private_dir(Path(spec.log_dir))
        except OSError as error:
            message = f"topology {topology!r} cannot be updated: {error}"
            raise SchedulerError(message) from error
        self._ask(topology, {"op": "update", "add": specs, "remove": list(remove)})

    def status(self, topology: str) -> JobStatus:
        folder = self._folder(topology)
        self._reap()
        deadline_s = monotonic_s() + _ANSWER_S
        pause = threading.Event()
        while folder.job_file.exists():
            topology_id = folder.topology_id()
            try:
                answer = request(folder, {"op": "status"}, _ANSWER_S)
            except OSError:
                if (lock := folder.lock(make=False)) is not None:
                    os.close(lock)
                    return JobStatus(SchedulerState.FAILED, _last_known(folder), topology_id)
                if monotonic_s() > deadline_s:
                    message = f"the supervisor of {topology!r} does not answer; see its log, or kill the topology"
                    raise SchedulerError(message) from None
                pause.wait(_POLL_S)  # it will listen soon, or be gone soon
                continue
            if (processes := ProcessList.read(folder)) is not None:
                self._seen[topology] = processes.supervisor
            state = SchedulerState.ENDED if answer["over"] else SchedulerState.RUNNING
            containers = convert_value(answer["containers"], tuple[ContainerStatus, ...])
            return JobStatus(state, containers, topology_id, str(answer["handle"]))
        return JobStatus(SchedulerState.ABSENT)

    def links(self, topology: str) -> tuple[JobLink, ...]:
        folder = self._folder(topology)
        record = folder.read_job()
        if record is None:
            return ()
        pages: dict[str, str] = {}
        with contextlib.suppress(OSError, SchedulerError):  # the files exist in any case
            pages = msgspec.convert(request(folder, {"op": "status"}, _ANSWER_S)["links"], dict[str, str])
        return (JobLink("logs", record.log_dir), *(JobLink(title, url) for title, url in pages.items()))

    def _ask(self, topology: str, message: Message) -> None:
        folder = self._folder(topology)
        try:
            if folder.job_file.exists():
                folder.write_avoided(self._avoided)
            request(folder, message, _CHANGE_S)
        except OSError as error:
            jobs = [each.parent.name for each in self._root.glob("*/job.json")]
            if topology not in jobs:
                text = f"topology {topology!r} does not run here{nearest(topology, jobs)}; running: {known(jobs)}"
                raise SchedulerError(text) from None
            text = f"the supervisor of {topology!r} does not answer ({error}); it ended or hangs, kill the topology"
            raise SchedulerError(text) from error

    def _folder(self, topology: str) -> JobFolder:
        if not _NAME.fullmatch(topology):
            message = f"{topology[:220]!r} is not a topology name: use 1 to 200 of the characters A-Z a-z 0-9 _ -"
            raise SchedulerError(message)
        return JobFolder(self._root / topology)

    def _take(self, folder: JobFolder) -> int:
        """Take the lock of the folder, which is created if missing; wait for a supervisor that is ending."""
        deadline_s = monotonic_s() + self.end_s
        pause = threading.Event()
        try:
            make_private_dir(self._root)
            check_private(self._root, "job folder")
            while (lock := folder.lock(make=True)) is None:
                if _answers(folder) or monotonic_s() > deadline_s:
                    message = f"topology {folder.path.name!r} is running already (see {folder.path}); kill it first"
                    raise SchedulerError(message)
                pause.wait(_POLL_S)
        except OSError as error:
            message = f"the job folder {folder.path} cannot be created: {error}; set scheduler.root to another folder"
            raise SchedulerError(message) from error
        return lock

    def _lock_of_ended(self, folder: JobFolder, topology_id: str, limit_s: float) -> int | None:
        """Wait for the supervisor to end and take the lock of its folder.

        None when the supervisor does not end in time, when the folder is gone, or when another run has taken the name.
        """
        deadline_s = monotonic_s() + limit_s
        pause = threading.Event()
        while folder.path.exists() and not folder.is_of_another(topology_id) and monotonic_s() < deadline_s:
            self._reap()
            if (lock := folder.lock(make=False)) is not None:
                return lock
            with contextlib.suppress(OSError):  # its command may have died before it listened
                request(folder, {"op": "kill"}, max(_POLL_S, deadline_s - monotonic_s()))
            pause.wait(_POLL_S)
        return None

    def _wait_for_exit(self, supervisor: ProcessIdentity) -> None:
        """The job has ended; an interpreter needs a moment more, and callers count what still runs."""

        def ended() -> bool:
            self._reap()
            return not supervisor.alive()

        wait_for(ended, self.listen_s, _POLL_S)

    def _reap(self) -> None:
        self._supervisors = [each for each in self._supervisors if each.poll() is None]


@contextlib.contextmanager
def _closing(descriptor: int) -> Iterator[None]:
    try:
        yield
    finally:
        os.close(descriptor)


def _answers(folder: JobFolder) -> bool:
    try:
        request(folder, {"op": "status"}, _LISTEN_S)
    except OSError:
        return False
    return True


def _last_known(folder: JobFolder) -> tuple[ContainerStatus, ...]:
    processes = ProcessList.read(folder)
    entries = processes.containers if processes is not None else ()
    return tuple(
        ContainerStatus(each.container_id, False, each.attempts, each.last_error or "its supervisor was killed")
        for each in entries
    )
