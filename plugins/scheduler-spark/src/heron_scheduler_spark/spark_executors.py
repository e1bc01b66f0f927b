"""The executors of a job as tasks of a Spark application that a driver process holds: the supervisor's side.

The driver may die or hang, and with it the application and every container. All containers have then ended. Starts wait
for the next driver, which the supervisor starts after a separate back-off. A container counts as ended only when its
executor is gone: a new executor would run the same tasks beside it. If no task reported that, the supervisor looks at
the process if it is on this machine. For a process elsewhere it waits as long as the executor may need.
"""

from __future__ import annotations

import json
import logging
import selectors
import signal
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import msgspec

from heron.clock import monotonic_s, wait_for
from heron.driver_kit.child_processes import ProcessIdentity
from heron.driver_kit.private_files import write_private
from heron.errors import SchedulerError
from heron_scheduler_kit.control import Message
from heron_scheduler_kit.executors import Executors, Exit, JobFacts, Placement
from heron_scheduler_kit.job_folder import JobFolder, JobRecord
from heron_scheduler_kit.supervision import BackoffLimits, next_wait_s
from heron_scheduler_spark.driver_process import DRIVER, FIRST_START, LATER_START, DriverLiveness, DriverProcess
from heron_scheduler_spark.settings.options import SparkOptions

__all__ = ["SparkExecutors"]

_LEAVE_S = 4.5  # the longest time in which an executor ends after the SIGTERM that it gets when its task dies
_KILLED_S, _INTERVAL_S = 2.0, 0.02  # until a killed process of this machine is gone
_FIRST_S = 2.0  # after the time for a start: a first container may fail, and the command can then report it

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Container:
    """A container that was started.

    `identity` is its executor, once that runs, and `here` whether it is a process of this machine. `placed` is whether
    a task has the order to start it.
    """

    attempt: int
    placed: bool = False
    up: bool = False
    here: bool = False
    where: str = ""
    waits: str = "waits for the Spark driver"
    identity: ProcessIdentity | None = None
    error: str | None = None
    own: bool = False
    leave_at_s: float = 0.0
    began_s: float | None = None


class SparkExecutors(Executors):
    """Starts and ends executors through the driver process."""

    tick_s = 0.25

    def __init__(
        self,
        folder: JobFolder,
        record: JobRecord,
        selector: selectors.BaseSelector,
        driver: Sequence[str] = DRIVER,
    ) -> None:
        """`driver` is the command; it gets the job file, `FIRST_START` or `LATER_START`, and a descriptor."""
        super().__init__(folder, record, selector)
        self._command = driver
        self._limits = BackoffLimits(record.backoff_s, record.backoff_max_s, record.stable_s)
        self._options = msgspec.convert(record.options, SparkOptions)
        self._start_s = self._options.start_s
        self._containers: dict[int, _Container] = {}
        self._driver: DriverProcess | None = None
        self._began_s = monotonic_s()
        self._ready_at_s: float | None = None
        self._next_at_s = 0.0
        self._wait_s = 0.0
        self._facts = JobFacts()
        self._reported = False
        self._failure = ""

    def begin(self) -> None:
        self._launch()

    def taken_over(self) -> bool:
        if self._failure:
            raise SchedulerError(self._failure)
        if self._ready_at_s is None:
            if monotonic_s() - self._began_s > self._start_s:
                msg = (
                    f"Spark at {self._options.master} gave no application within {self._start_s:g} s; check "
                    "that the master runs and has the same major version, and see "
                    f"{Path(self.record.log_dir, 'spark-driver.err')}"
                )
                raise SchedulerError(msg)
            return False
        first = any(each.up for each in self._containers.values()) or not self._containers
        self._reported = first or monotonic_s() - self._began_s > self._start_s + _FIRST_S
        return self._reported

    def start(self, container_id: int, attempt: int) -> None:
        spec_file = self.folder.spec_file(container_id)
        spec = {**json.loads(spec_file.read_bytes()), "attempt": attempt}
        write_private(spec_file, json.dumps(spec).encode())
        self._containers[container_id] = _Container(attempt)
        if self._ready_at_s is not None:
            self._ask("start", container_id)

    def terminate(self, container_id: int) -> None:
        self._end(container_id, "terminate")

    def kill(self, container_id: int) -> None:
        self._end(container_id, "kill")

    def placement(self, container_id: int) -> Placement:
        each = self._containers.get(container_id)
        if each is None:
            return Placement(up=False)
        silent_s = self._driver.silent_s if self._driver is not None else 0.0
        if each.up and silent_s > self._options.task_silence_s:  # the task has lost the driver and ends its container
            return Placement(False, each.where, f"ends: the Spark driver has sent nothing for {silent_s:.0f} s")
        return Placement(each.up, each.where, "" if each.up else each.waits)

    def identity(self, container_id: int) -> ProcessIdentity | None:
        each = self._containers.get(container_id)
        return each.identity if each is not None else None

    def facts(self) -> JobFacts:
        return self._facts

    def reap(self) -> tuple[Exit, ...]:
        if self._driver is None:
            if monotonic_s() >= self._next_at_s:
                self._relaunch()
        else:
            self._driver.truncate_log()
            for message in self._driver.receive():
                self._process(message)
            if (end := self._driver.ended()) is not None:
                self._driver_ended(f"the Spark driver ended: {end}")
            elif hang := self._driver.hangs():
                self._driver_ended(f"the Spark driver hung, and was killed: {hang}", wait=False)
        return tuple(self._gone())

    def close(self) -> None:
        if self._driver is not None:
            self._driver.stop(wait=self._ready_at_s is not None)
            self._driver = None
        executors = [each.identity for each in self._containers.values() if each.identity is not None]
        for each in executors:
            each.signal_group(signal.SIGKILL)
        wait_for(lambda: not any(each.alive() for each in executors), _KILLED_S, _INTERVAL_S)

    # -- the driver

    def _launch(self) -> None:
        self._began_s = monotonic_s()
        liveness = DriverLiveness(self._options.silence_s, self._start_s, self._began_s)
        log_dir = Path(self.record.log_dir)
        command = (*self._command, str(self.folder.job_file), LATER_START if self._reported else FIRST_START)
        self._driver = DriverProcess(command, log_dir, liveness, self.selector)

    def _relaunch(self) -> None:
        try:
            self._launch()
        except OSError as error:
            self._driver_ended(f"the Spark driver cannot be started: {error}")

    def _driver_ended(self, end: str, *, wait: bool = True) -> None:
        if self._driver is not None:
            self._driver.stop(wait=wait)
            self._driver = None
        ran_s = 0.0 if self._ready_at_s is None else monotonic_s() - self._ready_at_s
        why = self._failure or end
        _log.warning("%s", why)
        if not self._reported:
            self._failure = why
            return
        self._failure = ""
        was_ready, self._ready_at_s = self._ready_at_s is not None, None
        self._facts = JobFacts()
        self._wait_s = next_wait_s(self._limits, self._wait_s, ran_s)
        self._next_at_s = monotonic_s() + self._wait_s
        for each in self._containers.values():
            each.waits = f"waits for a new Spark driver; {why}"
            if was_ready and each.error is None:
                self._leave(each, why)

    # -- its messages

    def _process(self, message: Message) -> None:
        match message:
            case {"is": "ready", "handle": str(handle), "links": dict(links)}:
                self._ready(handle, {str(title): str(url) for title, url in links.items()})
            case {"is": "failed", "error": str(error)}:
                self._failure = error
            case {"is": "alive"}:
                return
            case {"is": "refused", "container_id": int(), "error": str(error)} if not self._reported:
                self._failure = error
            case {"container_id": int(container_id), "attempt": int(attempt)}:
                each = self._containers.get(container_id)
                if each is not None and each.attempt == attempt:
                    self._of_container(each, message)
            case _:
                _log.warning("unknown message of the driver: %s", message)

    def _ready(self, handle: str, links: dict[str, str]) -> None:
        _log.info("%s", handle)
        self._facts = JobFacts(handle, links)
        self._ready_at_s = monotonic_s()
        for container_id, each in self._containers.items():
            if each.error is None:
                self._ask("start", container_id)

    def _of_container(self, each: _Container, message: Message) -> None:
        match message:
            case {"is": "waits", "text": str(text)}:
                each.waits = text
            case {"is": "placed", "text": str(text)}:
                each.placed, each.waits = True, text
            case {"is": "begun", "pid": int(pid), "begun": str(begun)}:
                each.identity = ProcessIdentity(pid, begun)
                each.began_s = monotonic_s()
                each.here = each.identity.alive()
            case {"is": "up", "where": str(where)}:
                each.up, each.where = True, where
            case {"is": "ended", "error": str(error), "seen": bool(seen)} if each.error is None:
                each.own = message.get("own") is True
                self._leave(each, error, seen=seen)

    def _ask(self, what: str, container_id: int) -> None:
        if self._driver is not None:
            attempt = self._containers[container_id].attempt
            self._driver.send({"do": what, "container_id": container_id, "attempt": attempt})

    # -- ends

    def _end(self, container_id: int, how: str) -> None:
        each = self._containers.get(container_id)
        if each is None or each.error is not None:
            return
        if self._ready_at_s is None:
            self._leave(each, "it had not started")
        else:
            self._ask(how, container_id)

    def _leave(self, each: _Container, error: str, *, seen: bool = False) -> None:
        """Record the end of a container. `seen`: its task reported that its executor is gone."""
        each.error = error
        each.up = False
        each.leave_at_s = monotonic_s() + (_LEAVE_S if each.placed and not seen else 0.0)

    def _gone(self) -> list[Exit]:
        exits = []
        for container_id, each in list(self._containers.items()):
            if each.error is None:
                continue
            late = monotonic_s() >= each.leave_at_s
            if each.identity is not None and each.identity.alive():
                if late:
                    each.identity.signal_group(signal.SIGKILL)
                continue
            if not each.here and not late:
                continue
            del self._containers[container_id]
            ran_s = 0.0 if each.began_s is None else monotonic_s() - each.began_s
            exits.append(Exit(container_id, each.error, each.own, ran_s))
        return exits
