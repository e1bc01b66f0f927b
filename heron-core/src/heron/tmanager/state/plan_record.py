"""The node PHYSICAL_PLAN fences the state against a deposed leader.

A leader can be stopped at any instant, be deposed meanwhile, and continue without knowing it. So a check whether it
leads does not help. Instead, each write is conditional: the node must have the version of the leader's own last write.

- A new leader *claims* the node before it does anything else: it reads the plan and writes it back with its own,
  greater epoch. Afterwards the condition of every write of a former leader fails.
- A write of a former leader before the claim is in the plan that the new leader reads, so it stays valid. A leader
  reports a change to stream managers, executors and commands only after the write.
- A topology ends with a write of the same node. A deposed leader cannot write it, so it writes no report and stops no
  executor. (If the store does not answer, the containers are stopped after some attempts.)

If there is no plan yet, the claim writes a plan of version 0 without stream managers.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from heron.api.definition import TopologyDefinition
from heron.errors import HeronError, NewerFormatError, StateConflictError, StateUnavailableError
from heron.planner.physical_plan import ENDED_STATES, PhysicalPlan, TopologyState
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind, StateManager, Versioned
from heron.state_nodes.document import node_name
from heron.state_nodes.plans import decode_physical_plan, encode_plan

__all__ = ["PlanRecord"]

_log = logging.getLogger(__name__)


class PlanRecord:
    """The node of one run, as the leader of one epoch reads and writes it."""

    def __init__(self, statemgr: StateManager, topology: str, topology_id: str) -> None:
        self._statemgr = statemgr
        self._topology = topology
        self._topology_id = topology_id
        self._version: int | None = MUST_NOT_EXIST
        self._plan: PhysicalPlan | None = None

    def claim(
        self, definition: TopologyDefinition, epoch: int, first: TopologyState, troubles: list[str]
    ) -> tuple[PhysicalPlan, int]:
        """Claims the node; returns the plan that is now in it, and the epoch of the former leader (0: none).

        `first` is the state of the topology if there is no plan. An unreadable plan is replaced by a first plan, and
        the reason is added to `troubles`.

        Raises:
            StateConflictError: when a leader of a later epoch has claimed it.
            NewerFormatError: when a newer version of heron-core wrote the plan; nothing was changed.
            StateError: when it cannot be written, or the outcome is unknown.
        """
        while True:
            found, version = self._present(troubles)
            former = found.epoch if found else 0
            self._refuse(former, epoch)
            self._version = version
            plan = found or PhysicalPlan(0, epoch, self._topology_id, definition, first, (), ())
            if self._put(replace(plan, epoch=epoch)):
                return replace(plan, epoch=epoch), former

    def write(self, plan: PhysicalPlan) -> None:
        """Replaces the plan. A state that is an end stays, whatever state a later plan has.

        Raises:
            StateConflictError: when another leader has claimed the node; nothing was changed.
            StateError: when it cannot be written, or the outcome is unknown.
        """
        if self._plan is not None and self._plan.state in ENDED_STATES:
            plan = replace(plan, state=self._plan.state)
        while not self._put(plan):
            # Another leader wrote the node, or this one did in a call whose outcome was unknown.
            found, version = self._present([])
            if found is None:  # a command removed it, or it belongs to another run
                msg = f"run {self._topology_id!r} has no plan in the state manager any more; it was killed"
                raise StateConflictError(msg)
            self._refuse(found.epoch, plan.epoch)
            if found.state in ENDED_STATES:  # this leader wrote the end, and the answer was lost
                plan = replace(plan, state=found.state)
            self._version = version

    def end(self, state: TopologyState) -> None:
        """Writes the end of the topology; only after a claim. Raises as `write` does."""
        assert self._plan is not None  # noqa: S101  # every leader has claimed
        self.write(replace(self._plan, state=state))

    def _put(self, plan: PhysicalPlan) -> bool:
        try:
            self._version = self._statemgr.set(
                NodeKind.PHYSICAL_PLAN, self._topology, encode_plan(plan), expected=self._version
            )
        except StateConflictError as error:
            _log.info("%s", error)
            return False
        self._plan = plan
        return True

    def _present(self, troubles: list[str]) -> tuple[PhysicalPlan | None, int | None]:
        """The plan of this run in the node, if there is one, and the version that a replacing write must expect.

        A damaged node has no known version, and no leader can have written it since.
        """
        version: int | None = None
        try:
            node = self._statemgr.get(NodeKind.PHYSICAL_PLAN, self._topology)
            version = node.version if node else MUST_NOT_EXIST
            return self._own(node), version
        except (StateUnavailableError, NewerFormatError):
            raise
        except HeronError as error:
            troubles.append(f"a state node is not used: {error}")
            _log.warning("%s", troubles[-1])
            return None, version

    def _own(self, node: Versioned | None) -> PhysicalPlan | None:
        """The plan in the node, if it belongs to this run.

        Raises:
            HeronError: when it cannot be read.
        """
        plan = decode_physical_plan(node.value, node_name(NodeKind.PHYSICAL_PLAN, self._topology)) if node else None
        return plan if plan and plan.topology_id == self._topology_id else None

    def _refuse(self, found: int, own: int) -> None:
        if found > own:
            msg = (
                f"topology {self._topology!r}: the topology manager of epoch {own} was deposed by that of epoch "
                f"{found}; it ends and stands by"
            )
            raise StateConflictError(msg)
