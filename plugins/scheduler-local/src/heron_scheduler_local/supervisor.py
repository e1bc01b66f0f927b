"""The supervisor process of a job: ``python -m heron_scheduler_local.supervisor JOBFILE LOCK_FD READY_FD``.

One thread, one loop: it waits for signals, requests and the next due time, asks `Supervision` what to do, and does
it. The main thread is the one that starts executors, because their parent-death signal comes when the thread that
started them ends. It ends when all containers have ended, on SIGTERM, or on the request to kill the job; then nothing
of the job is left: no process, no run directory, no job folder. It imports little: every run waits for it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import shutil
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from heron.clock import monotonic_s
from heron.errors import SchedulerError
from heron.kernel.log import configure
from heron.kernel.process import PARENT_PID, bind_to_parent
from heron.kernel.signals import Signals
from heron_scheduler_local.backoff import BackoffLimits
from heron_scheduler_local.control import ControlServer, Message, Reply
from heron_scheduler_local.executors import Executors
from heron_scheduler_local.job_folder import JobFolder, JobRecord, write_private
from heron_scheduler_local.process_identity import ProcessIdentity
from heron_scheduler_local.process_list import ContainerEntry, ProcessList
from heron_scheduler_local.supervision import (
    ContainerState,
    Instruction,
    Kill,
    Start,
    Supervision,
    Terminate,
)

__all__ = ["Supervisor", "main"]

_log = logging.getLogger(__name__)


class Supervisor:
    """Joins the plan of action (`Supervision`) with the processes (`Executors`) and the requests (`ControlServer`)."""

    def __init__(self, folder: JobFolder, record: JobRecord, signals: Signals) -> None:
        self._folder = folder
        self._signals = signals
        self._run_dirs = set(record.run_dirs)
        limits = BackoffLimits(record.backoff_s, record.backoff_max_s, record.stable_s)
        self._supervision = Supervision(limits, record.grace_s)
        self._executors = Executors(folder, record.executor)
        self._me = ProcessIdentity.of(os.getpid())
        self._waiting: list[tuple[Callable[[], Message | None], Reply]] = []
        self._selector = selectors.DefaultSelector()
        self._selector.register(signals, selectors.EVENT_READ, signals.read)
        self._control = ControlServer(folder, self._selector, self._handle)
        self._stopping = False
        for container_id in record.container_ids:
            self._add(container_id)

    def start(self) -> None:
        """Starts every container. Raises SchedulerError when one cannot be; then none is left."""
        failures = self._do(self._supervision.due(monotonic_s()))
        if failures:
            self._executors.kill_all()
            raise SchedulerError(next(iter(failures.values())))

    def run(self) -> None:
        """Returns when the job is over; whatever happens, no executor is left."""
        try:
            while not self._supervision.over():
                self._wait()
                self._reap()
                if self._signals.stop_requested and not self._stopping:
                    _log.info("stopping: told by a signal")
                    self._stop()
                self._do(self._supervision.due(monotonic_s()))
                self._answer_waiting()
        finally:
            self._executors.kill_all()
            self._remove_run_dirs()
        self._answer_waiting()

    def close(self) -> None:
        self._control.close()
        self._selector.close()

    def _wait(self) -> None:
        due_s = self._supervision.next_due_s()
        timeout_s = None if due_s is None else max(0.0, due_s - monotonic_s())
        for key, _events in self._selector.select(timeout_s):
            key.data()

    def _reap(self) -> None:
        exits = self._executors.reap()
        for each in exits:
            self._supervision.exited(each.container_id, monotonic_s(), each.error)
            _log.log(
                logging.WARNING if each.error else logging.INFO,
                "container %d ended: %s",
                each.container_id,
                each.error or "done",
            )
        if exits:
            self._note()

    def _do(self, instructions: Sequence[Instruction]) -> dict[int, str]:
        """Carries them out; says of each container that could not be started why. It waits for its next attempt."""
        failures: dict[int, str] = {}
        for instruction in instructions:
            match instruction:
                case Start(container_id, attempt):
                    error = self._start(container_id, attempt)
                    if error:
                        failures[container_id] = error
                case Terminate(container_id):
                    self._executors.terminate(container_id)
                case Kill(container_id):
                    _log.warning("container %d did not stop in its grace time; killing it", container_id)
                    self._executors.kill(container_id)
        if instructions:
            self._note()
        return failures

    def _start(self, container_id: int, attempt: int) -> str:
        try:
            self._executors.start(container_id, attempt)
        except (OSError, ValueError) as error:
            message = f"container {container_id} cannot be started: {error}"
            _log.error("%s", message)
            self._supervision.exited(container_id, monotonic_s(), message)
            return message
        self._supervision.started(container_id, monotonic_s())
        _log.info("container %d started, attempt %d", container_id, attempt)
        return ""

    def _add(self, container_id: int) -> None:
        spec = json.loads(self._folder.spec_file(container_id).read_bytes())
        self._run_dirs.add(spec["run_dir"])
        self._supervision.add(container_id, spec["attempt"], monotonic_s())

    def _stop(self) -> None:
        self._stopping = True
        ids = [each.container_id for each in self._supervision.containers()]
        self._do(self._supervision.stop(ids, monotonic_s()))

    # -- requests

    def _handle(self, message: Message, reply: Reply) -> None:
        match message:
            case {"op": "status"}:
                reply(self._status())
            case {"op": "kill"}:
                _log.info("stopping: told by a command")
                self._stop()
                self._waiting.append((lambda: {} if self._supervision.over() else None, reply))
            case {"op": "restart", "container_id": int(container_id)}:
                self._restart(container_id, reply)
            case {"op": "update", "add": list(add), "remove": list(remove)}:
                self._update(add, remove, reply)
            case _:
                reply({"error": f"unknown request {message.get('op')!r}; this supervisor is of another version"})

    def _status(self) -> Message:
        return {
            "over": self._supervision.over(),
            "containers": [
                {
                    "container_id": each.container_id,
                    "running": each.running,
                    "attempts": each.attempts,
                    "last_error": each.last_error,
                }
                for each in self._supervision.containers()
            ],
        }

    def _restart(self, container_id: int, reply: Reply) -> None:
        each = self._supervision.container(container_id)
        before = each.attempts
        self._do(self._supervision.restart(container_id, monotonic_s()))

        def answer() -> Message | None:
            if each.attempts == before and each.state in {ContainerState.WAITING, ContainerState.RESTARTING}:
                return None
            if each.attempts > before and each.state in {ContainerState.RUNNING, ContainerState.ENDED}:
                return {}
            return {"error": f"container {container_id} did not come back: {each.last_error or 'it was stopped'}"}

        self._waiting.append((answer, reply))

    def _update(self, add: list[Message], remove: list[int], reply: Reply) -> None:
        if self._stopping:
            reply({"error": "the job is being stopped"})
            return
        for container_id in remove:
            self._supervision.container(container_id)  # refused before anything is changed
        added: list[int] = []
        try:
            for spec in add:
                container_id = int(str(spec["container_id"]))
                self._supervision.add(container_id, 1, monotonic_s())
                added.append(container_id)
                write_private(self._folder.spec_file(container_id), json.dumps(spec).encode())
                self._run_dirs.add(str(spec["run_dir"]))
            failures = self._do(self._supervision.due(monotonic_s()))
            for container_id in added:
                if container_id in failures:
                    raise SchedulerError(failures[container_id])
        except (SchedulerError, OSError, KeyError):
            for container_id in added:
                self._executors.kill_now(container_id)
            self._forget(added)
            raise
        self._do(self._supervision.stop(remove, monotonic_s()))
        gone = [self._supervision.container(container_id) for container_id in remove]
        self._waiting.append((lambda: None if any(each.running for each in gone) else self._forget(remove), reply))

    def _forget(self, container_ids: list[int]) -> Message:
        for container_id in container_ids:
            self._supervision.forget(container_id)
            self._folder.spec_file(container_id).unlink(missing_ok=True)
        self._note()
        return {}

    def _answer_waiting(self) -> None:
        still: list[tuple[Callable[[], Message | None], Reply]] = []
        for answer, reply in self._waiting:
            message = answer()
            if message is None:
                still.append((answer, reply))
            else:
                reply(message)
        self._waiting = still

    def _note(self) -> None:
        entries = []
        for each in self._supervision.containers():
            who = self._executors.identity(each.container_id) or ProcessIdentity(0, "")
            entries.append(ContainerEntry(each.container_id, each.attempts, each.last_error, who.pid, who.start))
        try:
            ProcessList(self._me, tuple(entries)).write(self._folder)
        except OSError as error:
            _log.warning("processes.json is not up to date: %s", error)

    def _remove_run_dirs(self) -> None:
        for run_dir in self._run_dirs:
            shutil.rmtree(run_dir, ignore_errors=True)


def main(job_file: str, lock: str, ready: str) -> int:
    """Supervises the job until it is over; `lock` and `ready` are inherited descriptors."""
    os.set_inheritable(int(lock), False)
    folder = JobFolder(Path(job_file).parent)
    record = folder.read_job()
    if record is None:
        return _report(int(ready), f"{job_file} cannot be read")
    if not record.attached:
        if os.fork():
            os._exit(0)  # the command waits for this one only, so that it leaves no zombie and owes none a wait
        os.setsid()
    signals = Signals((signal.SIGTERM, signal.SIGINT, signal.SIGCHLD))
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if record.attached and os.environ.get(PARENT_PID) != str(os.getppid()):
        return _leave(folder, record)  # the command is gone already; nothing was started
    bind_to_parent()
    configure(Path(record.log_dir, "supervisor.log"), topology=record.topology, process="supervisor")
    try:
        supervisor = Supervisor(folder, record, signals)
        supervisor.start()
    except (SchedulerError, OSError, ValueError) as error:
        return _report(int(ready), str(error))
    _report(int(ready), "")
    supervisor.run()
    supervisor.close()
    return _leave(folder, record)


def _report(ready: int, error: str) -> int:
    """Tells the command, which waits for one line: empty for success. Gives the exit code."""
    with contextlib.suppress(BrokenPipeError):  # the command is gone, which its death signal tells better
        os.write(ready, error.replace("\n", " ").encode()[:4000] + b"\n")
    os.close(ready)
    return 1 if error else 0


def _leave(folder: JobFolder, record: JobRecord) -> int:
    for run_dir in record.run_dirs:
        shutil.rmtree(run_dir, ignore_errors=True)
    folder.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
