"""A running topology by its name, as commands talk to it: found in the state manager, asked through the topology
manager that leads it at the moment.

A topology manager that is away is waited for, within a time limit: it is being started, for the first time or again.
What cannot become better by waiting is an error at once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self, TypeVar

from heron.clock import monotonic_s
from heron.errors import (
    AccessError,
    HeronError,
    RemoteProtocolError,
    StateError,
    StateUnavailableError,
    UnreachableError,
    UsageError,
    known,
    nearest,
)
from heron.ipc.keys import ClientKeys, Speaker
from heron.ipc.metrics_table import MetricsRow
from heron.ipc.query import TManagerClient
from heron.ipc.status import TopologyStatus
from heron.spi.scheduler import ContainerStatus, Scheduler, SchedulerState
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.execution_state import ExecutionState, decode_execution_state
from heron.state_nodes.keys import decode_keys
from heron.state_nodes.report import decode_report
from heron.state_nodes.tmanager_location import TManagerLocation, decode_tmanager_location
from heron_cli.client.discovery import check_name
from heron_cli.client.unreachable import Traces

__all__ = ["RemoteTopology"]

_ANSWER_S = 2.0  # it answers in milliseconds; after so long another may lead
_RETRY_S = 0.1
_STRANGE = 2  # one that is just leaving, or has just taken over a port, may seem strange once

T = TypeVar("T")

Question = Callable[[TManagerClient, float], T]
"""Asks through a client, within that many seconds."""


class RemoteTopology:
    """One run of a topology: the one that has the name when it is first asked for. Not thread-safe.

    Every question and change is over within about `timeout_s` and raises

    - `UsageError` when no such topology runs, it has ended, or it refuses; nothing was changed;
    - `AccessError` when the topology's keys in the state manager are not those that it runs with;
    - `UnreachableError` when it does not answer in time; says why;
    - `StateError` when the state manager does not answer, or holds what cannot be read;
    - `RemoteProtocolError` when the topology is run by a version of heron-core that this one does not understand.
    """

    def __init__(self, statemgr: StateManager, scheduler: Scheduler, name: str, timeout_s: float) -> None:
        self.name = name
        self.timeout_s = timeout_s
        self._statemgr = statemgr
        self._scheduler = scheduler
        self._run: ExecutionState | None = None
        self._client: TManagerClient | None = None
        self._client_of: tuple[str, Speaker] | None = None

    @property
    def run(self) -> ExecutionState:
        """Who submitted it, when, and where its folders are."""
        if self._run is None:
            self._run = self._find()
        return self._run

    def status(self, speaker: Speaker = Speaker.READER) -> TopologyStatus:
        """What its topology manager knows now."""
        return self._ask(speaker, lambda client, left_s: client.status(left_s))

    def metrics(self, component: str = "", task_id: int = 0, *, by_task: bool = False) -> tuple[MetricsRow, ...]:
        """Its newest metrics, summed up by component or by task; "" and 0 stand for all."""
        return self._ask(
            Speaker.READER,
            lambda client, left_s: client.metrics(component, task_id, by_task=by_task, timeout_s=left_s),
        )

    def change_state(self, state: str) -> None:
        """Makes it ``running``, ``paused`` or ``killed``; returns when that is written. What it is already is no
        error.
        """
        self._ask(Speaker.CONTROL, lambda client, left_s: client.change_state(state, left_s))

    def over(self) -> bool:
        """Whether this run has ended, so that nothing of it runs any more."""
        present = self._present()
        return present is None or present.topology_id != self.run.topology_id or self._traces().dead()

    def last_report(self) -> TopologyStatus | None:
        """The last status of the newest run of that name that has ended, if it is still kept."""
        check_name(self.name)
        node = self._statemgr.get(NodeKind.REPORT, self.name)
        return decode_report(node.value, self.name).status if node else None

    def close(self) -> None:
        """Closes its socket, not the drivers; idempotent."""
        if self._client is not None:
            self._client.close()
        self._client = self._client_of = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def _ask(self, speaker: Speaker, question: Question[T]) -> T:
        deadline_s = monotonic_s() + self.timeout_s
        pause = threading.Event()
        strange = 0
        while True:
            location = self._location()
            if location is None:
                why = self._absence()
            else:
                left_s = max(_RETRY_S, min(deadline_s - monotonic_s(), _ANSWER_S))
                try:
                    return question(self._connected(location, speaker), left_s)
                except UnreachableError as error:
                    why = str(error)
                except AccessError as error:
                    why = str(error)
                    strange += 1
                    if strange == _STRANGE:
                        raise AccessError(self._strange(why)) from error
                except RemoteProtocolError as error:
                    msg = f"topology {self.name!r}: {error}; use the version of heron-core that runs it"
                    raise RemoteProtocolError(msg) from error
                self.close()
            if monotonic_s() >= deadline_s:
                msg = f"topology {self.name!r}: {why}; given up after {self.timeout_s:g} s, try again"
                raise UnreachableError(msg)
            pause.wait(_RETRY_S)

    def _strange(self, why: str) -> str:
        return (
            f"topology {self.name!r}: {why}; the node {NodeKind.KEYS.value!r} of the state manager was changed since "
            f"{self.run.topology_id!r} began; put it back, or `{self.run.kill_command}` and submit it again"
        )

    def _connected(self, location: TManagerLocation, speaker: Speaker) -> TManagerClient:
        wanted = (location.endpoint, speaker)
        if self._client is None or self._client_of != wanted:
            self.close()
            self._client, self._client_of = TManagerClient(location.endpoint, self._keys(speaker)), wanted
        return self._client

    def _keys(self, speaker: Speaker) -> ClientKeys:
        node = self._statemgr.get(NodeKind.KEYS, self.name)
        if node is None:
            remedy = f"`{self.run.kill_command}` and submit it again"
            msg = f"topology {self.name!r} has no keys in the state manager; {remedy}"
            raise StateError(msg)
        return decode_keys(node.value, self.name).connecting_as(speaker)

    def _location(self) -> TManagerLocation | None:
        """Where the topology manager of this run is."""
        node = self._statemgr.get(NodeKind.TMANAGER_LOCATION, self.name)
        location = decode_tmanager_location(node.value, self.name) if node else None
        return location if location and location.topology_id == self.run.topology_id else None

    def _absence(self) -> str:
        """Why there is no topology manager.

        Raises:
            UsageError: when there will be none.
        """
        present = self._present()
        if present is None or present.topology_id != self.run.topology_id:
            raise UsageError(self._ended())
        if (report := self.last_report()) and report.topology_id == self.run.topology_id:
            raise UsageError(self._ended())  # it says so itself, though its processes may still be on their way out
        traces = self._traces()
        if not traces.dead():
            return traces.spoken()
        msg = (
            f"topology {self.name!r} is not running any more: its processes are gone and did not tidy up; "
            f"`{self.run.kill_command}` removes what they left"
        )
        raise UsageError(msg)

    def _traces(self) -> Traces:
        for kind in (NodeKind.TOPOLOGY, NodeKind.PACKING_PLAN):
            self._statemgr.get(kind, self.name)  # raises where it is garbled: no topology manager can begin then
        return Traces(
            self._planned(),
            self._statemgr.get(NodeKind.LOCK, self.name) is not None,
            *self._job(),
        )

    def _planned(self) -> bool:
        try:
            return self._statemgr.get(NodeKind.PHYSICAL_PLAN, self.name) is not None
        except StateUnavailableError:
            raise
        except StateError:
            return True  # damaged: the next topology manager makes it anew

    def _job(self) -> tuple[SchedulerState | None, tuple[ContainerStatus, ...]]:
        try:
            job = self._scheduler.status(self.name).of(self.run.topology_id)
            return job.state, job.containers
        except HeronError:
            return None, ()

    def _find(self) -> ExecutionState:
        check_name(self.name)
        if present := self._present():
            return present
        raise UsageError(self._ended())

    def _present(self) -> ExecutionState | None:
        node = self._statemgr.get(NodeKind.EXECUTION_STATE, self.name)
        return decode_execution_state(node.value, self.name) if node else None

    def _ended(self) -> str:
        report = self.last_report()
        if report is not None:
            how = "was killed" if report.state == "killed" else report.state
            why = f": {report.error}" if report.error else ""
            return f"topology {self.name!r} is not running; its last run, {report.topology_id}, {how}{why}"
        names = self._statemgr.list(NodeKind.EXECUTION_STATE)
        return f"topology {self.name!r} is not running{nearest(self.name, names)}; running: {known(names)}"
