"""The supervisor process of a job: ``python -m MODULE JOBFILE LOCK_FD READY_FD``, where MODULE calls `supervise`.

One thread runs one loop: it waits for signals, requests and the next due time, gets instructions from `Supervision`,
and passes them to the `Executors`. It ends when all containers have ended, on SIGTERM, or on a request to kill the job.
Then nothing of the job is left: no process, no run directory, no job folder. It imports little, because every run waits
for it.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import selectors
import shutil
import signal
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from heron.clock import monotonic_s
from heron.driver_kit.child_processes import ProcessIdentity
from heron.driver_kit.log import configure
from heron.driver_kit.parent_process import PARENT_PID, bind_to_parent
from heron.driver_kit.private_files import write_private
from heron.driver_kit.signals import Signals
from heron.errors import HeronError, SchedulerError
from heron_scheduler_kit.changes import Change, Restart, Stop, Update
from heron_scheduler_kit.control import ControlServer, Message, Reply
from heron_scheduler_kit.executors import Executors, JobLeftError, Placement
from heron_scheduler_kit.job_folder import JobFolder, JobRecord
from heron_scheduler_kit.process_list import ContainerEntry, ProcessList
from heron_scheduler_kit.supervision import (
    BackoffLimits,
    Container,
    ContainerState,
    Instruction,
    Kill,
    Start,
    Supervision,
    Terminate,
)

__all__ = ["MakeExecutors", "Supervisor", "supervise"]

MakeExecutors = Callable[[JobFolder, JobRecord, selectors.BaseSelector], Executors]

_CHANGE_S = 25.0  # a command that asked for a change waits 30 s

_log = logging.getLogger(__name__)


class Supervisor:
    """Joins the decisions (`Supervision`) with the processes (`Executors`) and the requests (`ControlServer`)."""

    def __init__(self, folder: JobFolder, record: JobRecord, signals: Signals, make: MakeExecutors) -> None:
        self._folder = folder
        self._signals = signals
        self._run_dirs = set(record.run_dirs)
        limits = BackoffLimits(record.backoff_s, record.backoff_max_s, record.stable_s)
        self._supervision = Supervision(limits, record.grace_s, record.restart_limit)
        self._me = ProcessIdentity.of(os.getpid())
        self._waiting: list[tuple[Change, Reply]] = []
        self._selector = selectors.DefaultSelector()
        self._selector.register(signals, selectors.EVENT_READ, signals.read)
        self._executors = make(folder, record, self._selector)
        self._control = ControlServer(folder, self._selector, self._handle)
        self._stopping = False
        self._noted: tuple[ContainerEntry, ...] | None = None
        self._not_noted = ""
        for container_id in folder.container_ids():
            self._add(container_id)

    def run(self, report: Callable[[str], None]) -> bool:
        """Run until the job is over; return False when it could not begin, or goes on without this supervisor.

        No executor is left, except after `JobLeftError`.

        `report` is called once: with "" when the job is taken over, else with the error.
        """
        error, told, left = "", False, False
        try:
            self._executors.begin()
            if failures := self._do(self._supervision.due(monotonic_s())):
                raise SchedulerError(next(iter(failures.values())))
            while not self._supervision.over():
                if not told and self._executors.taken_over():
                    told = True
                    report("")
                self._turn()
        except JobLeftError as caught:
            error, left = str(caught), True
            _log.warning("this supervisor ends: %s", error)
        except (SchedulerError, OSError, ValueError) as caught:
            if told:
                raise
            error = str(caught)
        finally:
            self._executors.close()
            if not left:
                self._remove_run_dirs()
        self._answer_waiting()
        if not told:
            report(error)
        return not error

    def close(self) -> None:
        self._control.close()
        self._selector.close()

    def _turn(self) -> None:
        self._wait()
        self._reap()
        if self._signals.stop_requested and not self._stopping:
            _log.info("stopping: a signal was received")
            self._stop()
        self._do(self._supervision.due(monotonic_s()))
        self._note()  # the process of a container on another machine may become known later
        self._answer_waiting()

    def _wait(self) -> None:
        due_s = self._supervision.next_due_s()
        timeout_s = None if due_s is None else max(0.0, due_s - monotonic_s())
        tick_s = self._executors.tick_s
        if tick_s is not None:
            timeout_s = tick_s if timeout_s is None else min(tick_s, timeout_s)
        for key, _events in self._selector.select(timeout_s):
            key.data()

    def _reap(self) -> None:
        exits = self._executors.reap()
        for each in exits:
            self._supervision.exited(each.container_id, monotonic_s(), each.error, own=each.own, ran_s=each.ran_s)
            _log.log(
                logging.WARNING if each.error else logging.INFO,
                "container %d ended: %s",
                each.container_id,
                each.error or "done",
            )
        if exits:
            self._note()

    def _do(self, instructions: Sequence[Instruction]) -> dict[int, str]:
        """Carry out instructions; return the errors of containers that could not be started and will be retried."""
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
        except (HeronError, OSError, ValueError) as error:
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
        self._end([each.container_id for each in self._supervision.containers()])

    # -- requests

    def _handle(self, message: Message, reply: Reply) -> None:
        match message:
            case {"op": "status"}:
                reply(self._status())
            case {"op": "kill"}:
                _log.info("stopping: a command asked for it")
                self._stop()
                self._waiting.append((Stop(self._supervision), reply))
            case {"op": "restart", "container_id": int(container_id)}:
                self._restart(container_id, reply)
            case {"op": "update", "add": list(add), "remove": list(remove)}:
                self._update(add, remove, reply)
            case _:
                reply({"error": f"unknown request {message.get('op')!r}; this supervisor is of another version"})

    def _status(self) -> Message:
        facts = self._executors.facts()
        return {
            "over": self._supervision.over(),
            "handle": facts.handle,
            "links": dict(facts.links),
            "containers": [self._container_status(each) for each in self._supervision.containers()],
        }

    def _container_status(self, each: Container) -> Message:
        placement = self._executors.placement(each.container_id) if each.running else Placement(up=False)
        waits = f"{placement.waits}; before: {each.last_error}" if each.last_error else placement.waits
        return {
            "container_id": each.container_id,
            "running": placement.up,
            "attempts": each.attempts,
            "last_error": waits if placement.waits else self._last_error(each),
            "where": placement.where,
            "host": placement.host,
        }

    def _last_error(self, each: Container) -> str:
        if each.state is not ContainerState.DOWN:
            return each.last_error
        remedy = f"`heron restart {self._folder.path.name} {each.container_id}` tries again"
        return f"{each.last_error}; given up after {each.faults} failures in a row (scheduler.restart_limit), {remedy}"

    def _restart(self, container_id: int, reply: Reply) -> None:
        restart = Restart(self._supervision.container(container_id), self._executors.placement, _CHANGE_S)
        self._do(self._supervision.restart(container_id, monotonic_s()))
        self._waiting.append((restart, reply))

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
        except (SchedulerError, OSError, KeyError):
            self._forget(added)  # none of them has been started yet
            raise
        self._do(self._supervision.due(monotonic_s()))
        update = Update(self._supervision, self._executors.placement, self._end, self._forget, _CHANGE_S)
        update.begin(added, remove)
        self._waiting.append((update, reply))

    def _end(self, container_ids: Iterable[int]) -> None:
        self._do(self._supervision.stop(container_ids, monotonic_s()))

    def _forget(self, container_ids: Iterable[int]) -> None:
        for container_id in container_ids:
            self._supervision.forget(container_id)
            self._folder.spec_file(container_id).unlink(missing_ok=True)
        self._note()

    def _answer_waiting(self) -> None:
        still: list[tuple[Change, Reply]] = []
        for change, reply in self._waiting:
            try:
                message = change.answer()
            except (
                HeronError,
                OSError,
                ValueError,
                LookupError,
            ) as error:  # an error of one request; the job continues
                _log.error("a request cannot be carried out: %s: %s", type(error).__name__, error)
                message = {"error": f"the request cannot be carried out: {error}"}
            if message is None:
                still.append((change, reply))
            else:
                reply(message)
        self._waiting = still

    def _note(self) -> None:
        entries = tuple(map(self._entry, self._supervision.containers()))
        if entries == self._noted:
            return
        try:
            ProcessList(self._me, entries).write(self._folder)
        except OSError as error:  # retried at each turn, logged once
            if str(error) != self._not_noted:
                self._not_noted = str(error)
                _log.warning("processes.json is not up to date: %s", error)
        else:
            self._noted, self._not_noted = entries, ""

    def _entry(self, each: Container) -> ContainerEntry:
        who = self._executors.identity(each.container_id) or ProcessIdentity(0, "")
        return ContainerEntry(each.container_id, each.attempts, each.last_error, who.pid, who.start)

    def _remove_run_dirs(self) -> None:
        for run_dir in self._run_dirs:
            shutil.rmtree(run_dir, ignore_errors=True)


def supervise(
    make: MakeExecutors, job_file: str, lock: str, ready: str, *, begin: Callable[[], None] = lambda: None
) -> int:
    """Supervise the job until it is over and return the exit code; `lock` and `ready` are inherited descriptors.

    `begin` is called once, in the process that supervises, before that has a handler of a signal or a socket.
    """
    os.set_inheritable(int(lock), False)
    os.set_inheritable(int(ready), False)
    folder = JobFolder(Path(job_file).parent)
    record = folder.read_job()
    if record is None:
        _report(int(ready), f"{job_file} cannot be read")
        return 1
    if not record.attached:
        if os.fork():
            os._exit(0)  # the command waits only for this process, so it leaves no zombie
        os.setsid()
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # as everything that starts from here
    begin()
    signals = Signals((signal.SIGTERM, signal.SIGINT, signal.SIGCHLD))
    if record.attached and os.environ.get(PARENT_PID) != str(os.getppid()):
        return _leave(folder, record)  # the command has ended already; nothing was started
    bind_to_parent()
    configure(Path(record.log_dir, "supervisor.log"), topology=record.topology, process="supervisor")
    try:
        supervisor = Supervisor(folder, record, signals, make)
    except (SchedulerError, OSError, ValueError) as error:
        _report(int(ready), str(error))
        return 1
    if not supervisor.run(lambda error: _report(int(ready), error)):
        return 1  # the command cleans up
    supervisor.close()
    return _leave(folder, record)


def _report(ready: int, error: str) -> None:
    """Write one line to the command, which waits for it: "" for success."""
    with contextlib.suppress(BrokenPipeError):  # the command has ended; its death signal reports that
        os.write(ready, error.replace("\n", " ").encode()[:4000] + b"\n")
    os.close(ready)


def _leave(folder: JobFolder, record: JobRecord) -> int:
    for run_dir in record.run_dirs:
        shutil.rmtree(run_dir, ignore_errors=True)
    folder.remove()
    return 0
