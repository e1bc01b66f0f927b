"""Publishes plans: writes the physical plan and the packing plan, then sends them to stream managers and executors."""

from __future__ import annotations

import logging
from collections.abc import Callable

from heron.errors import StateConflictError, StateError
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope
from heron.ipc.reactor import Reactor, Timer
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import PhysicalPlan
from heron.state_nodes.plans import encode_plan, encode_tasks
from heron.tmanager.state.containers import Containers
from heron.tmanager.state.state_store import StateStore

__all__ = ["PlanPublisher"]

_RETRY_S = 0.5

_log = logging.getLogger(__name__)


class PlanPublisher:
    """Publishes the newest plan, and tries again while the state manager is away. It never sends an overtaken plan."""

    def __init__(
        self, reactor: Reactor, store: StateStore, containers: Containers, on_waiting: Callable[[str], None]
    ) -> None:
        """`on_waiting` gets the reason why a plan waits, and an empty text when no plan waits any more."""
        self._reactor = reactor
        self._store = store
        self._containers = containers
        self._on_waiting = on_waiting
        self._newest: PhysicalPlan | None = None
        self._written: PhysicalPlan | None = None
        self._frame = b""  # of the written plan, made once: all stream managers register with a new leader
        self._packing: PackingPlan | None = None
        self._retry: Timer | None = None
        self._waiting: list[Callable[[], object]] = []

    def publish(self, plan: PhysicalPlan, packing: PackingPlan) -> None:
        """Writes a plan and its packing plan; sends them to every stream manager and executor.

        The physical plan is written first: see `heron.planner.plan_update.reconciled`.

        Raises:
            StateConflictError: when another topology manager leads; nothing was sent.
        """
        self._newest = plan
        if self._retry is not None:
            self._retry.cancel()  # a repeated command publishes the same plan again; one chain of attempts is enough
        try:
            self._store.save_plan(plan)
            self._store.save_packing(packing)
        except StateConflictError:
            raise
        except StateError as error:
            text = f"physical plan {plan.version} cannot be written, next attempt in {_RETRY_S:g} s: {error}"
            _log.error("%s", text)
            self._on_waiting(text)
            self._retry = self._reactor.after(_RETRY_S, lambda: self.publish(plan, packing))
            return
        self._written = plan
        self._frame = self._containers.frame_for_stmgrs(_message(plan))
        self._on_waiting("")
        self._containers.send_to_stmgrs(self._frame)
        if packing != self._packing:
            self._packing = packing
            for container_id in self._containers.executors():
                self.send_tasks(container_id)
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    def when_written(self, call: Callable[[], object]) -> None:
        """Calls `call` when the newest plan is written, which may be at once."""
        if self._newest is self._written:
            call()
        else:
            self._waiting.append(call)

    def send_tasks(self, container_id: int) -> None:
        """Sends the tasks of its container to an executor; one whose container has left the plan gets a stop."""
        if self._packing is None or container_id == 0:
            return
        try:
            tasks = self._packing.container(container_id).instances
        except KeyError:
            stop = pb.Stop(reason=f"container {container_id} has left the plan")
            self._containers.send_to_executor(container_id, Envelope(stop=stop))
            return
        self._containers.send_to_executor(
            container_id, Envelope(container_tasks=pb.ContainerTasks(document=encode_tasks(tasks)))
        )

    def send(self, container_id: int, plan: PhysicalPlan) -> None:
        """Sends a written plan to one stream manager; a plan that waits goes to all when it is written."""
        if plan is self._written:
            self._containers.send_to_stmgr(container_id, self._frame)


def _message(plan: PhysicalPlan) -> Envelope:
    return Envelope(plan=pb.Plan(version=plan.version, document=encode_plan(plan)))
