"""The driver's desk: what the supervisor asks for, what tasks say and what Spark reports, joined for each container.

Nothing here waits: Spark's JVM is asked in a thread of its own, so that tasks are answered while it pauses.
"""

from __future__ import annotations

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
from heron_scheduler_spark.container_start import ContainerStart, StartPhase
from heron_scheduler_spark.jvm_thread import JvmThread
from heron_scheduler_spark.log_mirror import LogMirror
from heron_scheduler_spark.message_stream import MessageStream
from heron_scheduler_spark.orders import Orders
from heron_scheduler_spark.spark_jobs import JobOver, SparkJobs, Survey, survey
from heron_scheduler_spark.task_words import Ended, Hello, LogText, Refused, Said, Up, Word, said_in

__all__ = ["Desk", "DeskSettings"]

_ASK_AGAIN_S = 5.0  # so much later at most does a forgotten executor come; each time the master looks at its workers
_KILLED_S = 1.5  # a task that was told to kill its container has done so by then, or does not listen
_ENDED = (
    "Spark has ended the application: its driver's JVM died, somebody killed it on Spark's page, or no executor could "
    "be started (see the logs of the workers; is their work folder full?)"
)

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class DeskSettings:
    """Where logs of containers go, after how much silence a task counts as lost, whether Spark is asked for sizes."""

    log_dir: Path
    silence_s: float
    with_sizes: bool


class Desk:
    """Called from the driver's main thread."""

    def __init__(
        self,
        supervisor: MessageStream,
        jobs: SparkJobs,
        jvm: JvmThread,
        hub: GuardedHub,
        orders: Orders,
        settings: DeskSettings,
    ) -> None:
        self._supervisor = supervisor
        self._jobs = jobs
        self._jvm = jvm
        self._hub = hub
        self._orders = orders
        self._settings = settings
        self._mirror = LogMirror(settings.log_dir)
        self._starts: dict[str, ContainerStart] = {}
        self._surveying = self._stopped = self._is_warned = False
        self._ask_again_at_s = 0.0

    def look(self) -> bool:
        """Takes all that has come; False when supervisor or application are gone, and all is to end."""
        for message in self._supervisor.receive():
            self._asked(message)
        while (received := self._hub.receive_from()) is not None:
            peer, frame, _speaker = received
            self._heard(peer, frame)
        while not self._jobs.ended.empty():
            self._jvm.ask(self._jobs.is_stopped, partial(self._job_over, self._jobs.ended.get()))
        self._jvm.deliver()
        return not self._supervisor.closed and not self._stopped

    def tick(self) -> bool:
        """Once a second: heartbeats, what has become silent, what is to be cancelled, what Spark takes away."""
        if not self.look():  # what has come while this process itself was paused is no silence
            return False
        self._supervisor.send({"is": "alive", "jvm_silent_s": self._jvm.silent_s})
        now_s = monotonic_s()
        for start in list(self._starts.values()):
            if start.phase is StartPhase.ASKED:
                continue
            self._say(start.peer, Word.BEAT)
            if now_s - start.heard_s > self._settings.silence_s:
                self._cancel(start)
                self._over(start, f"its task on {start.host} was not heard of for {self._settings.silence_s:g} s")
        if not self._surveying:  # a JVM that pauses is asked once
            self._survey(now_s)
        return True

    def _survey(self, now_s: float) -> None:
        self._surveying = True
        starts = self._starts.values()
        for start in starts:
            if start.phase is StartPhase.UP and not start.executor:  # Spark did not know it yet
                self._jvm.ask(partial(self._jobs.executor_of, start.ticket), partial(self._up, start))
        due = [each.ticket for each in starts if now_s >= each.cancel_at_s]
        executors = {each.executor for each in starts if each.executor and not each.ending}
        waits = any(each.phase is StartPhase.ASKED and not each.ending for each in starts)
        if owed := waits and now_s >= self._ask_again_at_s:
            self._ask_again_at_s = now_s + _ASK_AGAIN_S
        self._jvm.ask(partial(survey, self._jobs, due, executors, owed=owed), self._surveyed)

    # -- the supervisor

    def _asked(self, message: Message) -> None:
        match message:
            case {"do": "start", "container_id": int(container_id), "attempt": int(attempt)}:
                self._begin(container_id, attempt)
            case {"do": "terminate" | "kill" as how, "container_id": int(container_id), "attempt": int(attempt)}:
                for start in list(self._starts.values()):
                    if (start.container_id, start.attempt) == (container_id, attempt):
                        self._end(start, Word(how))
            case _:
                _log.warning("the supervisor asks for what is not understood: %s", message)

    def _begin(self, container_id: int, attempt: int) -> None:
        ticket = f"{container_id}-{attempt}-{secrets.token_hex(8)}"
        start = ContainerStart(container_id, attempt, ticket)
        try:
            order = self._orders.order(container_id, ticket, self._hub.endpoint)
            request = self._orders.request(container_id) if self._settings.with_sizes else None
        except (OSError, ValueError, HeronError) as error:
            self._tell(start, "refused", error=str(error))
            self._tell(start, "ended", error=str(error), seen=True)
            return
        self._starts[ticket] = start
        self._tell(start, "waits", text="waits for Spark to give it an executor")
        title = f"container {container_id}, attempt {attempt}"
        self._jvm.ask(partial(self._jobs.run, ticket, order, title, request))

    def _end(self, start: ContainerStart, how: Word) -> None:
        start.ending = start.ending or "it was told to end"
        if start.phase is StartPhase.ASKED:
            start.cancel_at_s = monotonic_s()
            self._cancel(start)  # again at each tick: Spark may not know of the job yet
            return
        self._say(start.peer, how)
        if how is Word.KILL:
            start.cancel_at_s = monotonic_s() + _KILLED_S

    # -- tasks

    def _heard(self, peer: bytes, frame: bytes) -> None:
        said = said_in(frame)
        if said is None:
            if not self._is_warned:
                self._is_warned = True
                _log.warning("somebody with a key says what is not understood; that is dropped, now and later")
        elif isinstance(said, Hello):
            self._greet(peer, said)
        elif start := next((each for each in self._starts.values() if each.peer == peer), None):
            start.heard_s = monotonic_s()
            self._told_by(start, said)
        elif not isinstance(said, Ended):
            self._say(peer, Word.KILL)  # it was given up, and its container started elsewhere

    def _told_by(self, start: ContainerStart, said: Said) -> None:
        match said:
            case Up(pid, begun):
                start.phase = StartPhase.UP
                self._tell(start, "begun", pid=pid, begun=begun)
                self._jvm.ask(partial(self._jobs.executor_of, start.ticket), partial(self._up, start))
            case Refused(error):
                self._tell(start, "refused", error=error)
            case LogText(file, text):
                self._mirror.take(file, text)
            case Ended(error, own):
                self._over(start, error, seen=True, own=own)

    def _greet(self, peer: bytes, said: Hello) -> None:
        start = self._starts.get(said.ticket)
        if start is None or start.ending or start.phase is not StartPhase.ASKED:
            self._say(peer, Word.LEAVE)
        else:
            start.phase, start.peer, start.host = StartPhase.PLACED, peer, said.host
            start.heard_s = monotonic_s()
            self._tell(start, "placed", text=f"is being started on {start.host}")
            self._say(start.peer, Word.GO)
        if start is not None and start.peer != peer:
            # Spark has lost the task and started it elsewhere by itself; attempts are ours to count.
            self._cancel(start)
            self._over(start, start.ending or f"Spark lost {start.executor or 'the executor'} on {start.host}")

    def _say(self, peer: bytes, word: Word) -> None:
        self._hub.send(peer, msgspec.json.encode(word))

    # -- Spark

    def _cancel(self, start: ContainerStart) -> None:
        self._jvm.ask(partial(self._jobs.cancel, start.ticket))

    def _up(self, start: ContainerStart, executor: str) -> None:
        if start.ticket in self._starts:
            start.executor = executor
            self._tell(start, "up", where=f"executor {executor or '?'} on {start.host}")

    def _job_over(self, over: JobOver, stopped: bool) -> None:
        if (start := self._starts.get(over.ticket)) is None:
            return
        asked = start.phase is StartPhase.ASKED
        reason = _ENDED if stopped else over.reason
        if asked and not start.ending:
            self._tell(start, "refused", error=f"container {start.container_id}: {reason}")
        self._over(start, reason or ("" if start.phase is StartPhase.UP else "its task ended at once"), seen=asked)

    def _surveyed(self, found: Survey) -> None:
        self._surveying = False
        if found.stopped:
            _log.error("%s", _ENDED)
            self._supervisor.send({"is": "failed", "error": _ENDED})
            self._stopped = True
        for start in list(self._starts.values()):
            if start.executor in found.leaving and not start.ending:
                self._move(start)

    def _move(self, start: ContainerStart) -> None:
        """Spark waits for tasks that never end before it gives an executor up: so this one is ended, and comes anew."""
        _log.info("container %d leaves executor %s, which Spark takes away", start.container_id, start.executor)
        self._end(start, Word.TERMINATE)
        start.ending = f"Spark takes executor {start.executor} on {start.host} away"

    # -- ends

    def _over(self, start: ContainerStart, reason: str, *, seen: bool = False, own: bool = False) -> None:
        """`seen`: nothing of its executor is left, as its task saw. Else a task that still hears is told to end."""
        del self._starts[start.ticket]
        if not seen:
            self._say(start.peer, Word.KILL)
        _log.info("container %d, attempt %d, ended: %s", start.container_id, start.attempt, reason or "done")
        error = start.ending if start.ending and not reason else reason
        self._tell(start, "ended", error=error, seen=seen, own=own)

    def _tell(self, start: ContainerStart, what: str, **facts: object) -> None:
        self._supervisor.send({"is": what, "container_id": start.container_id, "attempt": start.attempt, **facts})
