"""The end of a topology: it is written, with its report, and then every executor is told to stop.

In this order, for whoever was deposed cannot write it: see `heron.tmanager.plan_record`.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from heron.clock import monotonic_s
from heron.errors import StateConflictError, StateError
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope
from heron.ipc.reactor import Reactor
from heron.ipc.status import TopologyStatus
from heron.tmanager.containers import Containers
from heron.tmanager.state_store import StateStore
from heron.tmanager.stop_sequence import StopSequence

__all__ = ["Farewell"]

_REPORT_ATTEMPTS = 5
_REPORT_RETRY_S = 0.5
_LOOK_S = 0.1

_log = logging.getLogger(__name__)


class Farewell:
    """Does nothing until it is begun."""

    def __init__(
        self, reactor: Reactor, store: StateStore, containers: Containers, container_ids: tuple[int, ...], own: int
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
        """Calls when the end is written, or given up; at once where the topology is not over, or that was done."""
        if self._begun and self._sequence is None:
            self._waiting.append(call)
        else:
            call()

    def connected(self, container_id: int) -> None:
        """An executor has said hello."""
        if self._sequence is not None:
            self._sequence.connected(container_id)
            self._tell()

    def confirmed(self, container_id: int) -> None:
        """An executor has heard that it is to stop."""
        if self._sequence is not None:
            self._sequence.confirmed(container_id)
            self._tell()

    def _write(self, report: TopologyStatus, attempts: int) -> None:
        try:
            self._store.save_end(report)
        except StateConflictError:
            raise  # another leads
        except StateError as error:
            _log.error("the report cannot be written, %d attempts left: %s", attempts - 1, error)
            if attempts > 1:
                self._reactor.after(_REPORT_RETRY_S, lambda: self._write(report, attempts - 1))
                return
        self._sequence = StopSequence(self._container_ids, self._own, monotonic_s())
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()
        self._tell()
        self._reactor.every(_LOOK_S, self._tell)

    def _tell(self) -> None:
        if self._sequence is None:
            return
        for container_id in self._sequence.due(self._containers.executors(), monotonic_s()):
            self._containers.send_to_executor(container_id, Envelope(stop=pb.Stop(reason=self._reason)))
