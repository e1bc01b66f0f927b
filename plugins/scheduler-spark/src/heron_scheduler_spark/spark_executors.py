"""The executors of a job as tasks of a Spark application, which a driver process has: the supervisor's side.

The driver may die, and with it the application and every container. Then each container has ended, and what is started
again waits for the next driver, which comes after a back-off of its own. A container counts as ended only when its
executor, if it is a process of this machine, is gone: a new one would run the same tasks beside it.
"""

from __future__ import annotations

import json
import logging
import selectors
import signal
from dataclasses import dataclass
from pathlib import Path

from heron.clock import monotonic_s
from heron.errors import SchedulerError
from heron.kernel.job.backoff import BackoffLimits, next_wait_s
from heron.kernel.job.executors import Executors, Exit, JobFacts, Placement
from heron.kernel.job.job_folder import JobFolder, JobRecord, write_private
from heron.kernel.job.process_identity import ProcessIdentity
from heron_scheduler_spark.driver_process import DriverProcess
from heron_scheduler_spark.message_stream import Message

__all__ = ["SparkExecutors"]

_LEAVE_S = 4.5  # an executor whose task died has SIGTERM and takes so long at most
_FIRST_S = 2.0  # beyond the time for a start: a first container may fail, which the command can then tell

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class _Container:
    """One that was started; `identity` is its executor, once it is up and where it is on this machine."""

    attempt: int
    up: bool = False
    where: str = ""
    waits: str = "waits for the Spark driver"
    identity: ProcessIdentity | None = None
    error: str | None = None
    own: bool = False
    leave_at_s: float = 0.0


class SparkExecutors(Executors):
    """Has a driver process do it."""

    tick_s = 0.25

    def __init__(self, folder: JobFolder, record: JobRecord, selector: selectors.BaseSelector) -> None:
        super().__init__(folder, record, selector)
        self._limits = BackoffLimits(record.backoff_s, record.backoff_max_s, record.stable_s)
        self._start_s = float(str(record.options["start_s"]))
        self._containers: dict[int, _Container] = {}
        self._driver: DriverProcess | None = None
        self._began_s = monotonic_s()
        self._ready_at_s: float | None = None
        self._next_at_s = 0.0
        self._wait_s = 0.0
        self._facts = JobFacts()
        self._told = False
        self._failure = ""

    def begin(self) -> None:
        self._launch()

    def taken_over(self) -> bool:
        if self._failure:
            raise SchedulerError(self._failure)
        if self._ready_at_s is None:
            if monotonic_s() - self._began_s > self._start_s:
                msg = (
                    f"Spark at {self.record.options['master']} gave no application within {self._start_s:g} s; is the "
                    f"master up, and of the same major version? see {Path(self.record.log_dir, 'spark-driver.err')}"
                )
                raise SchedulerError(msg)
            return False
        first = any(each.up for each in self._containers.values()) or not self._containers
        self._told = first or monotonic_s() - self._began_s > self._start_s + _FIRST_S
        return self._told

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
            for message in self._driver.stream.receive():
                self._take(message)
            if (end := self._driver.ended()) is not None:
                self._driver_ended(end)
        return tuple(self._gone())

    def close(self) -> None:
        if self._driver is not None:
            self.selector.unregister(self._driver.stream)
            self._driver.stop(serves=self._ready_at_s is not None)
            self._driver = None
        for each in self._containers.values():
            if each.identity is not None:
                _kill_group(each.identity)

    # -- the driver

    def _launch(self) -> None:
        self._began_s = monotonic_s()
        self._driver = DriverProcess(self.folder.job_file, Path(self.record.log_dir))
        self.selector.register(self._driver.stream, selectors.EVENT_READ, lambda: None)

    def _relaunch(self) -> None:
        try:
            self._launch()
        except OSError as error:
            self._driver_ended(str(error))

    def _driver_ended(self, end: str) -> None:
        if self._driver is not None:
            self.selector.unregister(self._driver.stream)
            self._driver.stop(serves=self._ready_at_s is not None)
            self._driver = None
        ran_s = monotonic_s() - self._began_s
        why = self._failure or f"the Spark driver ended: {end}"
        _log.warning("%s", why)
        if not self._told:
            self._failure = why
            return
        self._failure = ""
        was_ready, self._ready_at_s = self._ready_at_s is not None, None
        self._wait_s = next_wait_s(self._limits, self._wait_s, ran_s)
        self._next_at_s = monotonic_s() + self._wait_s
        for each in self._containers.values():
            each.waits = f"waits for a new Spark driver; {why}"
            if was_ready and each.error is None:
                self._leave(each, why)

    # -- its messages

    def _take(self, message: Message) -> None:
        match message:
            case {"is": "ready", "handle": str(handle), "links": dict(links)}:
                self._ready(handle, {str(title): str(url) for title, url in links.items()})
            case {"is": "failed", "error": str(error)}:
                self._failure = error
            case {"is": "refused", "container_id": int(), "error": str(error)} if not self._told:
                self._failure = error
            case {"container_id": int(container_id), "attempt": int(attempt)}:
                each = self._containers.get(container_id)
                if each is not None and each.attempt == attempt:
                    self._of_container(each, message)
            case _:
                _log.warning("the driver says what is not understood: %s", message)

    def _ready(self, handle: str, links: dict[str, str]) -> None:
        _log.info("Spark application %s", handle)
        self._facts = JobFacts(handle, links)
        self._ready_at_s = monotonic_s()
        for container_id, each in self._containers.items():
            if each.error is None:
                self._ask("start", container_id)

    def _of_container(self, each: _Container, message: Message) -> None:
        match message:
            case {"is": "up", "where": str(where), "pid": int(pid), "begun": str(begun)}:
                each.up, each.where = True, where
                each.identity = ProcessIdentity(pid, begun)
            case {"is": "waits", "text": str(text)}:
                each.waits = text
            case {"is": "ended", "error": str(error)} if each.error is None:
                self._leave(each, error)
                each.own = message.get("own") is True

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
            self._leave(each, "it had not begun")
        else:
            self._ask(how, container_id)

    def _leave(self, each: _Container, error: str) -> None:
        each.error = error
        each.up = False
        each.leave_at_s = monotonic_s() + _LEAVE_S

    def _gone(self) -> list[Exit]:
        exits = []
        for container_id, each in list(self._containers.items()):
            if each.error is None:
                continue
            if each.identity is not None and each.identity.alive():
                if monotonic_s() > each.leave_at_s:
                    _kill_group(each.identity)
                continue
            del self._containers[container_id]
            exits.append(Exit(container_id, each.error, each.own))
        return exits


def _kill_group(leader: ProcessIdentity) -> None:
    leader.signal_group(signal.SIGKILL)
