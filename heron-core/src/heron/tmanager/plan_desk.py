"""Plans on their way out: written first, then sent; while the state manager is away they wait."""

from __future__ import annotations

import logging
from collections.abc import Callable

from heron.errors import StateConflictError, StateError
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope
from heron.ipc.reactor import Reactor, Timer
from heron.planner.physical_plan import PhysicalPlan
from heron.state_nodes.plans import encode_plan
from heron.tmanager.containers import Containers
from heron.tmanager.state_store import StateStore

__all__ = ["PlanDesk"]

_RETRY_S = 0.5

_log = logging.getLogger(__name__)


class PlanDesk:
    """Publishes the newest plan; one that was overtaken while it waited is never sent."""

    def __init__(
        self, reactor: Reactor, store: StateStore, containers: Containers, on_waiting: Callable[[str], None]
    ) -> None:
        """`on_waiting` is told why a plan waits, and with an empty text that none waits any more."""
        self._reactor = reactor
        self._store = store
        self._containers = containers
        self._on_waiting = on_waiting
        self._newest: PhysicalPlan | None = None
        self._written: PhysicalPlan | None = None
        self._retry: Timer | None = None
        self._waiting: list[Callable[[], object]] = []

    def publish(self, plan: PhysicalPlan) -> None:
        """Writes a plan and sends it to every stream manager.

        Raises:
            StateConflictError: when another leads; nobody was sent anything.
        """
        self._newest = plan
        if self._retry is not None:
            self._retry.cancel()  # of an older plan, or of this one: a command that is repeated asks for it again
        try:
            self._store.save_plan(plan)
        except StateConflictError:
            raise
        except StateError as error:
            text = f"physical plan {plan.version} cannot be written, tried again until it can: {error}"
            _log.error("%s", text)
            self._on_waiting(text)
            self._retry = self._reactor.after(_RETRY_S, lambda: self.publish(plan))
            return
        self._written = plan
        self._on_waiting("")
        self._containers.send_to_stmgrs(_message(plan))
        waiting, self._waiting = self._waiting, []
        for call in waiting:
            call()

    def when_written(self, call: Callable[[], object]) -> None:
        """Calls when the newest plan is written: at once, or when the state manager is back."""
        if self._newest is self._written:
            call()
        else:
            self._waiting.append(call)

    def send(self, container_id: int, plan: PhysicalPlan) -> None:
        """Sends a plan to one stream manager, unless it still has to be written."""
        if plan is self._written:
            self._containers.send_to_stmgr(container_id, _message(plan))


def _message(plan: PhysicalPlan) -> Envelope:
    return Envelope(plan=pb.Plan(version=plan.version, document=encode_plan(plan)))
