"""The end of a topology: its report is written, then every executor gets the order to stop.

The write comes first, because a deposed leader cannot write and so stops no executor: see `plan_record`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable

from heron.clock import monotonic_s
from heron.errors import StateConflictError, StateError
from heron.ipc import control_pb2 as pb
from heron.ipc.documents.status import TopologyStatus
from heron.ipc.envelope import Envelope
from heron.ipc.reactor import Reactor
from heron.tmanager.state.containers import Containers
from heron.tmanager.state.state_store import StateStore

__all__ = ["StopSequence", "TopologyEnd"]

_REPORT_ATTEMPTS = 5
_REPORT_RETRY_S = 0.5
_CHECK_S = 0.1
_CONFIRM_S = 2.0  # executors confirm at once; an executor that restarts has this time to connect

_log = logging.getLogger(__name__)


class StopSequence:
    """The order in which executors get the stop message; times are monotonic seconds. Pure.

    The leader's own container is the last, because the leader ends with it. It stops when every other executor has
    confirmed, or after a time limit.
    """

    def __init__(self, containers: Iterable[int], own: int, now_s: float) -> None:
        self._own = own
        self._waiting = set(containers) - {own}
        self._deadline_s = now_s + _CONFIRM_S
        self._sent: set[int] = set()

    def confirmed(self, container_id: int) -> None:
        """This executor has confirmed the order."""
        self._waiting.discard(container_id)

    def connected(self, container_id: int) -> None:
        """This executor has connected, perhaps again: it gets the order on its new connection."""
        self._sent.discard(container_id)

    def due(self, connected: Iterable[int], now_s: float) -> frozenset[int]:
        """The executors that get the order now; they are not returned again."""
        others_done = not self._waiting or now_s >= self._deadline_s
        due = frozenset(each for each in connected if each not in self._sent and (each != self._own or others_done))
        self._sent |= due
        return due


class TopologyEnd:
    """Ends the topology when `begin` is called; does nothing before."""

    def __init__(
        self,
        reactor: Reactor,
        store: StateStore,
        containers: Containers,
        container_ids: Callable[[], Iterable[int]],
        own: int,
    ) -> None:
        self._reactor = reactor
        self._store = store
        self._containers = containers
        self._container_ids = container_ids
        self._own = own
        self._sequence: StopSequence | None = None
        self._reason = ""
        self._begun = False
        self._waiting: list[Callable[[], object]] = []

    def begin(self, report: TopologyStatus, reason: str) -> None:
        """The topology is over."""
        self._begun, self._reason = True, reason
        self._write(report, _REPORT_ATTEMPTS)

    def when_written(self, call: Callable[[], object]) -> None:
        """Calls `call` when the end is written or given up, or at once if the topology is not over."""
        if self._begun and self._sequence is None:
            self._waiting.append(call)
        else:
            call()

    def connected(self, container_id: int) -> None:
        """An executor has registered."""
        if self._sequence is not None:
            self._sequence.connected(container_id)
            self._send()

    def confirmed(self, container_id: int) -> None:
        """An executor has confirmed the order to stop."""
        if self._sequence is not None:
            self._sequence.confirmed(container_id)
            self._send()

    def _write(self, report: TopologyStatus, attempts: int) -> None:
        try:
            self._store.save_end(report)
        except StateConflictError:
            raise  # another topology manager leads
        except StateError as error:
            _log.error("the report cannot be written, %d attempts left: %s", attempts - 1, error)
            if attempts > 1:
                self._reactor.after(_REPORT_RETRY_S, lambda: self._write(report, attempts - 1))
                return
        self._sequence = StopSequence(self._container_ids(), self._own, monotonic_s())
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()
        self._send()
        self._reactor.every(_CHECK_S, self._send)

    def _send(self) -> None:
        if self._sequence is None:
            return
        for container_id in self._sequence.due(self._containers.executors(), monotonic_s()):
            self._containers.send_to_executor(container_id, Envelope(stop=pb.Stop(reason=self._reason)))
