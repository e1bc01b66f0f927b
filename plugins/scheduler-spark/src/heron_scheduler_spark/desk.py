"""The driver's desk: what the supervisor asks for, what tasks say and what Spark reports, joined for each container.

       placed (hello)        up
ASKED ───────────────▶ PLACED ──▶ UP
  │                      │        │
  └──────────────────────┴────────┴── ended, its Spark job over, or silent ──▶ gone from the table
"""

from __future__ import annotations

import enum
import json
import logging
import secrets
from dataclasses import dataclass
from pathlib import Path

from heron.clock import monotonic_s
from heron.errors import HeronError
from heron.ipc.guarded_hub import GuardedHub
from heron_scheduler_spark.application import Application
from heron_scheduler_spark.log_shipping import LogMirror
from heron_scheduler_spark.master import Master
from heron_scheduler_spark.message_stream import Message, MessageStream
from heron_scheduler_spark.orders import Orders

__all__ = ["Desk", "DeskSettings"]

_KILLED_S = 1.5  # a task that was told to kill its container has done so by then, or does not listen
_ENDED = (
    "Spark has ended the application: its driver's JVM died, somebody killed it on Spark's page, or no executor could "
    "be started (see the logs of the workers; is their work folder full?)"
)

_log = logging.getLogger(__name__)


class _Phase(enum.Enum):
    ASKED = "asked"
    PLACED = "placed"
    UP = "up"


@dataclass(slots=True)
class _Start:
    """One start of a container; `ending` is why it is being ended, `cancel_at_s` when its Spark job is cancelled."""

    container_id: int
    attempt: int
    ticket: str
    phase: _Phase = _Phase.ASKED
    peer: bytes = b""
    host: str = ""
    executor: str = ""
    heard_s: float = 0.0
    ending: str = ""
    cancel_at_s: float = float("inf")


@dataclass(frozen=True, slots=True)
class DeskSettings:
    """Where the logs of containers go, after how much silence a task counts as lost, and which Spark it is."""

    log_dir: Path
    silence_s: float
    master: Master


class Desk:
    """Called from the driver's main thread."""

    def __init__(
        self,
        supervisor: MessageStream,
        application: Application,
        hub: GuardedHub,
        orders: Orders,
        settings: DeskSettings,
    ) -> None:
        self._supervisor = supervisor
        self._application = application
        self._hub = hub
        self._orders = orders
        self._silence_s = settings.silence_s
        self._mirror = LogMirror(settings.log_dir)
        self._with_profiles = not settings.master.here
        self._starts: dict[str, _Start] = {}

    def look(self) -> bool:
        """Takes all that has come; False when the supervisor is gone, and all is to end."""
        for message in self._supervisor.receive():
            self._asked(message)
        while (received := self._hub.receive_from()) is not None:
            peer, frame, _speaker = received
            self._heard(peer, json.loads(frame))
        while not self._application.ended.empty():
            over = self._application.ended.get()
            if start := self._starts.get(over.ticket):
                reason = _ENDED if self._application.is_stopped() else over.reason
                if start.phase is _Phase.ASKED and not start.ending:
                    self._tell(start, "refused", error=f"container {start.container_id}: {reason}")
                self._over(start, reason or ("" if start.phase is _Phase.UP else "its task ended at once"))
        return not self._supervisor.closed

    def tick(self) -> bool:
        """Once a second: heartbeats, what has become silent, what is to be cancelled, what Spark takes away."""
        now_s = monotonic_s()
        for start in list(self._starts.values()):
            if start.phase is not _Phase.ASKED:
                self._say(start, "beat")
                if now_s - start.heard_s > self._silence_s:
                    self._application.cancel(start.ticket)
                    self._over(start, f"its task on {start.host} was not heard of for {self._silence_s:g} s")
                    continue
                self._move(start)
            if now_s >= start.cancel_at_s:
                self._application.cancel(start.ticket)
        if self._application.is_stopped():
            _log.error("%s", _ENDED)
            self._supervisor.send({"is": "failed", "error": _ENDED})
            return False
        return self.look()

    # -- the supervisor

    def _asked(self, message: Message) -> None:
        match message:
            case {"do": "start", "container_id": int(container_id), "attempt": int(attempt)}:
                self._begin(container_id, attempt)
            case {"do": "terminate" | "kill" as how, "container_id": int(container_id), "attempt": int(attempt)}:
                for start in list(self._starts.values()):
                    if (start.container_id, start.attempt) == (container_id, attempt):
                        self._end(start, how)
            case _:
                _log.warning("the supervisor asks for what is not understood: %s", message)

    def _begin(self, container_id: int, attempt: int) -> None:
        ticket = f"{container_id}-{attempt}-{secrets.token_hex(8)}"
        start = _Start(container_id, attempt, ticket)
        try:
            order = self._orders.order(container_id, attempt, ticket, self._hub.endpoint)
            request = self._orders.request(container_id) if self._with_profiles else None
        except (OSError, ValueError, HeronError) as error:
            self._tell(start, "refused", error=str(error))
            self._tell(start, "ended", error=str(error))
            return
        self._starts[ticket] = start
        self._tell(start, "waits", text="waits for Spark to give it an executor")
        self._application.run(ticket, order, f"container {container_id}, attempt {attempt}", request)

    def _end(self, start: _Start, how: str) -> None:
        start.ending = start.ending or "it was told to end"
        if start.phase is _Phase.ASKED:
            start.cancel_at_s = monotonic_s()
            self._application.cancel(start.ticket)  # again at each tick: Spark may not know of the job yet
            return
        self._say(start, how)
        if how == "kill":
            start.cancel_at_s = monotonic_s() + _KILLED_S

    # -- tasks

    def _heard(self, peer: bytes, said: Message) -> None:
        if said["say"] == "hello":
            self._greet(peer, said)
            return
        start = next((each for each in self._starts.values() if each.peer == peer), None)
        if start is None:
            return  # it is over already
        start.heard_s = monotonic_s()
        match said:
            case {"say": "up", "pid": int(pid), "begun": str(begun)}:
                start.phase = _Phase.UP
                start.executor = self._application.executor_of(start.ticket)
                where = f"executor {start.executor or '?'} on {start.host}"
                self._tell(start, "up", where=where, pid=pid, begun=begun)
            case {"say": "refused", "error": str(error)}:
                self._tell(start, "refused", error=error)
            case {"say": "log", "file": str(name), "text": str(text)}:
                self._mirror.take(name, text)
            case {"say": "ended", "error": str(error)}:
                self._over(start, error, own=said.get("own") is True)

    def _greet(self, peer: bytes, said: Message) -> None:
        start = self._starts.get(str(said["ticket"]))
        if start is None or start.ending or start.phase is not _Phase.ASKED:
            self._hub.send(peer, b'{"do": "leave"}')
        else:
            start.phase, start.peer, start.host = _Phase.PLACED, peer, str(said["host"])
            start.heard_s = monotonic_s()
            self._say(start, "go")
        if start is not None and start.peer != peer:
            # Spark has lost the task and started it elsewhere by itself; attempts are ours to count.
            self._application.cancel(start.ticket)
            self._over(start, start.ending or f"Spark lost {start.executor or 'the executor'} on {start.host}")

    def _say(self, start: _Start, what: str) -> None:
        self._hub.send(start.peer, json.dumps({"do": what}).encode())

    # -- ends

    def _over(self, start: _Start, reason: str, *, own: bool = False) -> None:
        del self._starts[start.ticket]
        _log.info("container %d, attempt %d, ended: %s", start.container_id, start.attempt, reason or "done")
        self._tell(start, "ended", error=start.ending if start.ending and not reason else reason, own=own)

    def _move(self, start: _Start) -> None:
        """Spark waits for tasks that never end before it gives an executor up: so this one is ended, and comes anew."""
        if start.ending or not start.executor or not self._application.is_leaving(start.executor):
            return
        _log.info("container %d leaves executor %s, which Spark takes away", start.container_id, start.executor)
        self._end(start, "terminate")
        start.ending = f"Spark takes executor {start.executor} on {start.host} away"

    def _tell(self, start: _Start, what: str, **facts: object) -> None:
        self._supervisor.send({"is": what, "container_id": start.container_id, "attempt": start.attempt, **facts})
