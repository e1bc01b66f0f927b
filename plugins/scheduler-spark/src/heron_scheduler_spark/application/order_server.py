"""The order server of the driver: it combines requests of the supervisor, messages of tasks and reports of Spark.

It keeps one `ContainerStart` for each start of a container:

       placed (hello)        up
ASKED ───────────────▶ PLACED ──▶ UP
  │                      │        │
  └──────────────────────┴────────┴── ended, its Spark job over, or silent ──▶ removed

Nothing here waits. `JvmThread` makes the calls into Spark's JVM, so tasks get answers while the JVM pauses.
"""

from __future__ import annotations

import enum
import logging
import secrets
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import msgspec

from heron.clock import monotonic_s
from heron.driver_kit.links import GuardedHub
from heron.errors import HeronError
from heron_scheduler_kit.control import Message
from heron_scheduler_spark.application.orders import Orders
from heron_scheduler_spark.application.spark_jobs import (
    ApplicationState,
    JobOver,
    JvmThread,
    SparkJobs,
    check_application,
)
from heron_scheduler_spark.messages.log_transfer import LogMirror
from heron_scheduler_spark.messages.message_stream import MessageStream
from heron_scheduler_spark.messages.task_messages import (
    ContainerEnded,
    DriverCommand,
    ExecutorStarted,
    LogText,
    StartFailed,
    TaskHello,
    TaskMessage,
    decode_task_message,
)

__all__ = ["OrderServer", "OrderServerSettings"]

_ASK_AGAIN_S = 5.0  # the longest wait for an executor that Spark forgot; the master checks its workers each time
_KILLED_S = 1.5  # by then a task that received the command has killed its container
_APPLICATION_ENDED = (
    "Spark has ended the application: its driver's JVM died, somebody killed it on Spark's page, or no executor could "
    "be started (see the logs of the workers; is their work folder full?)"
)

_log = logging.getLogger(__name__)


class StartPhase(enum.Enum):
    """How far a start has come."""

    ASKED = "asked"
    PLACED = "placed"
    UP = "up"


@dataclass(slots=True)
class ContainerStart:
    """One start. `ending` is why it is being ended; `cancel_at_s` is when its Spark job is cancelled (monotonic s)."""

    container_id: int
    attempt: int
    ticket: str
    phase: StartPhase = StartPhase.ASKED
    peer: bytes = b""
    host: str = ""
    executor: str = ""
    received_s: float = 0.0
    ending: str = ""
    cancel_at_s: float = float("inf")


@dataclass(frozen=True, slots=True)
class OrderServerSettings:
    """The folder for logs of containers, the silence after which a task is lost, and whether Spark gets sizes."""

    log_dir: Path
    silence_s: float
    with_sizes: bool


class OrderServer:
    """Called from the driver's main thread."""

    def __init__(
        self,
        supervisor: MessageStream,
        jobs: SparkJobs,
        jvm: JvmThread,
        hub: GuardedHub,
        orders: Orders,
        settings: OrderServerSettings,
    ) -> None:
        self._supervisor = supervisor
        self._jobs = jobs
        self._jvm = jvm
        self._hub = hub
        self._orders = orders
        self._settings = settings
        self._mirror = LogMirror(settings.log_dir)
        self._starts: dict[str, ContainerStart] = {}
        self._checking = self._stopped = self._is_warned = False
        self._ask_again_at_s = 0.0

    def process(self) -> bool:
        """Process all that has arrived. Return False when supervisor or application are gone: the driver then ends."""
        for message in self._supervisor.receive():
            self._from_supervisor(message)
        while (received := self._hub.receive_from()) is not None:
            peer, frame, _speaker = received
            self._from_task(peer, frame)
        while not self._jobs.ended.empty():
            self._jvm.ask(self._jobs.is_stopped, partial(self._job_over, self._jobs.ended.get()))
        self._jvm.deliver()
        return not self._supervisor.closed and not self._stopped

    def check_due(self) -> bool:
        """Send heartbeats, end silent tasks and check the application; called once a second. Return as `process`."""
        if not self.process():  # messages that arrived while this process was paused do not count as silence
            return False
        self._supervisor.send({"is": "alive", "jvm_silent_s": self._jvm.silent_s})
        now_s = monotonic_s()
        for start in list(self._starts.values()):
            if start.phase is StartPhase.ASKED:
                continue
            self._send(start.peer, DriverCommand.BEAT)
            if now_s - start.received_s > self._settings.silence_s:
                self._cancel(start)
                self._over(start, f"its task on {start.host} sent nothing for {self._settings.silence_s:g} s")
        if not self._checking:  # one question at a time, also while the JVM pauses
            self._check(now_s)
        return True

    def _check(self, now_s: float) -> None:
        self._checking = True
        starts = self._starts.values()
        for start in starts:
            if start.phase is StartPhase.UP and not start.executor:  # Spark did not know it yet
                self._jvm.ask(partial(self._jobs.executor_of, start.ticket), partial(self._up, start))
        due = [each.ticket for each in starts if now_s >= each.cancel_at_s]
        executors = {each.executor for each in starts if each.executor and not each.ending}
        waits = any(each.phase is StartPhase.ASKED and not each.ending for each in starts)
        if owed := waits and now_s >= self._ask_again_at_s:
            self._ask_again_at_s = now_s + _ASK_AGAIN_S
        self._jvm.ask(partial(check_application, self._jobs, due, executors, owed=owed), self._checked)

    # -- the supervisor

    def _from_supervisor(self, message: Message) -> None:
        match message:
            case {"do": "start", "container_id": int(container_id), "attempt": int(attempt)}:
                self._begin(container_id, attempt)
            case {"do": "terminate" | "kill" as how, "container_id": int(container_id), "attempt": int(attempt)}:
                for start in list(self._starts.values()):
                    if (start.container_id, start.attempt) == (container_id, attempt):
                        self._end(start, DriverCommand(how))
            case _:
                _log.warning("unknown request of the supervisor: %s", message)

    def _begin(self, container_id: int, attempt: int) -> None:
        ticket = f"{container_id}-{attempt}-{secrets.token_hex(8)}"
        start = ContainerStart(container_id, attempt, ticket)
        try:
            order = self._orders.order(container_id, ticket, self._hub.endpoint)
            request = self._orders.request(container_id) if self._settings.with_sizes else None
        except (OSError, ValueError, HeronError) as error:
            self._report(start, "refused", error=str(error))
            self._report(start, "ended", error=str(error), seen=True)
            return
        self._starts[ticket] = start
        self._report(start, "waits", text="waits for Spark to give it an executor")
        title = f"container {container_id}, attempt {attempt}"
        self._jvm.ask(partial(self._jobs.run, ticket, order, title, request))

    def _end(self, start: ContainerStart, how: DriverCommand) -> None:
        start.ending = start.ending or "the scheduler ended it"
        if start.phase is StartPhase.ASKED:
            start.cancel_at_s = monotonic_s()
            self._cancel(start)  # again at each call: Spark may not know of the job yet
            return
        self._send(start.peer, how)
        if how is DriverCommand.KILL:
            start.cancel_at_s = monotonic_s() + _KILLED_S

    # -- tasks

    def _from_task(self, peer: bytes, frame: bytes) -> None:
        message = decode_task_message(frame)
        if message is None:
            if not self._is_warned:
                self._is_warned = True
                _log.warning("a peer with a key sends unknown messages; the driver drops them and logs this once")
        elif isinstance(message, TaskHello):
            self._admit(peer, message)
        elif start := next((each for each in self._starts.values() if each.peer == peer), None):
            start.received_s = monotonic_s()
            self._from_start(start, message)
        elif not isinstance(message, ContainerEnded):
            self._send(peer, DriverCommand.KILL)  # the task was given up, and its container was started elsewhere

    def _from_start(self, start: ContainerStart, message: TaskMessage) -> None:
        match message:
            case ExecutorStarted(pid, begun):
                start.phase = StartPhase.UP
                self._report(start, "begun", pid=pid, begun=begun)
                self._jvm.ask(partial(self._jobs.executor_of, start.ticket), partial(self._up, start))
            case StartFailed(error):
                self._report(start, "refused", error=error)
            case LogText(file, text):
                self._mirror.append(file, text)
            case ContainerEnded(error, own):
                self._over(start, error, seen=True, own=own)

    def _admit(self, peer: bytes, hello: TaskHello) -> None:
        start = self._starts.get(hello.ticket)
        if start is None or start.ending or start.phase is not StartPhase.ASKED:
            self._send(peer, DriverCommand.LEAVE)
        else:
            start.phase, start.peer, start.host = StartPhase.PLACED, peer, hello.host
            start.received_s = monotonic_s()
            self._report(start, "placed", text=f"is being started on {start.host}")
            self._send(start.peer, DriverCommand.GO)
        if start is not None and start.peer != peer:
            # Spark lost the task and started it elsewhere by itself. Only the supervisor may start another attempt.
            self._cancel(start)
            self._over(start, start.ending or f"Spark lost {start.executor or 'the executor'} on {start.host}")

    def _send(self, peer: bytes, command: DriverCommand) -> None:
        self._hub.send(peer, msgspec.json.encode(command))

    # -- Spark

    def _cancel(self, start: ContainerStart) -> None:
        self._jvm.ask(partial(self._jobs.cancel, start.ticket))

    def _up(self, start: ContainerStart, executor: str) -> None:
        if start.ticket in self._starts:
            start.executor = executor
            self._report(start, "up", where=f"executor {executor or '?'} on {start.host}")

    def _job_over(self, over: JobOver, stopped: bool) -> None:
        if (start := self._starts.get(over.ticket)) is None:
            return
        asked = start.phase is StartPhase.ASKED
        reason = _APPLICATION_ENDED if stopped else over.reason
        if asked and not start.ending:
            self._report(start, "refused", error=f"container {start.container_id}: {reason}")
        self._over(start, reason or ("" if start.phase is StartPhase.UP else "its task ended at once"), seen=asked)

    def _checked(self, state: ApplicationState) -> None:
        self._checking = False
        if state.stopped:
            _log.error("%s", _APPLICATION_ENDED)
            self._supervisor.send({"is": "failed", "error": _APPLICATION_ENDED})
            self._stopped = True
        for start in list(self._starts.values()):
            if start.executor in state.leaving and not start.ending:
                self._move(start)

    def _move(self, start: ContainerStart) -> None:
        """End a container whose executor Spark takes away; the supervisor starts it again.

        Spark waits until the tasks of that executor end, and the task of a container never ends by itself.
        """
        _log.info("container %d leaves executor %s, which Spark takes away", start.container_id, start.executor)
        self._end(start, DriverCommand.TERMINATE)
        start.ending = f"Spark takes executor {start.executor} on {start.host} away"

    # -- ends

    def _over(self, start: ContainerStart, reason: str, *, seen: bool = False, own: bool = False) -> None:
        """Report an end. `seen`: the task saw that its executor is gone. Otherwise the task gets a command to kill."""
        del self._starts[start.ticket]
        if not seen:
            self._send(start.peer, DriverCommand.KILL)
        _log.info("container %d, attempt %d, ended: %s", start.container_id, start.attempt, reason or "done")
        error = start.ending if start.ending and not reason else reason
        self._report(start, "ended", error=error, seen=seen, own=own)

    def _report(self, start: ContainerStart, what: str, **facts: object) -> None:
        self._supervisor.send({"is": what, "container_id": start.container_id, "attempt": start.attempt, **facts})
