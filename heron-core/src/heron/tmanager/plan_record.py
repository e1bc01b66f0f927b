"""The node PHYSICAL_PLAN as one leader's own: what fences the state against a leader that was deposed.

A leader may be stopped at any instant, deposed meanwhile, and wake up without knowing. So it never writes because it
looked and found itself leading: it writes on condition that the node has the version that it left there itself.

- Whoever takes over *claims* the node before doing anything else: it reads the plan and writes it again with its own,
  greater epoch. From then on no write of a former leader holds its condition.
- What a former leader wrote before that is in the plan that was read, and so outlives it. What it says that it has
  done, to stream managers, executors and commands, it says after its write.
- The end of a topology is a write of the same node: whom the store tells that another leads writes no report and stops
  nobody. (Where the store does not answer at all, containers are stopped after some attempts.)

Where no plan was made yet a claim is a plan of version 0, in which nobody is located.
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
    """The plan of one run of one topology, as the leader of one epoch keeps it."""

    def __init__(self, statemgr: StateManager, topology: str, topology_id: str) -> None:
        self._statemgr = statemgr
        self._topology = topology
        self._topology_id = topology_id
        self._version: int | None = MUST_NOT_EXIST
        self._plan: PhysicalPlan | None = None

    def claim(
        self, definition: TopologyDefinition, epoch: int, first: TopologyState, troubles: list[str]
    ) -> tuple[PhysicalPlan, int]:
        """Takes the node over: gives the plan that stands there from now on, and the epoch of who led before (0: none).

        `first` is the state of the topology where there is no plan. One that cannot be read is made anew, which is
        added to `troubles`.

        Raises:
            StateConflictError: when a leader of a later epoch has it.
            StateError: when it cannot be written, or it is unknown whether it was.
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
        """Replaces the plan. An end is for good: what is written after it keeps its state.

        Raises:
            StateConflictError: when another leader has claimed it; nothing was changed.
            StateError: when it cannot be written, or it is unknown whether it was.
        """
        if self._plan is not None and self._plan.state in ENDED_STATES:
            plan = replace(plan, state=self._plan.state)
        while not self._put(plan):
            # Another has written, or we have, in a call that said that nobody knows.
            found, version = self._present([])
            if found is None:  # removed by a command that has ended the topology, or another run's
                msg = f"the plan of {self._topology_id!r} in the state manager is no more one of this run"
                raise StateConflictError(msg)
            self._refuse(found.epoch, plan.epoch)
            if found.state in ENDED_STATES:  # an end of ours whose answer was lost
                plan = replace(plan, state=found.state)
            self._version = version

    def end(self, state: TopologyState) -> None:
        """Writes that the topology is over; after a claim. Raises as `write` does."""
        assert self._plan is not None  # noqa: S101  # who leads has claimed
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
        """The plan in the node, if there is one of this run, and the condition of a write that replaces what is there.

        Where the node itself is damaged nobody knows its version, and no leader can have written it since.
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
        """The plan in the node, if it is of this run.

        Raises:
            HeronError: when it cannot be read.
        """
        plan = decode_physical_plan(node.value, node_name(NodeKind.PHYSICAL_PLAN, self._topology)) if node else None
        return plan if plan and plan.topology_id == self._topology_id else None

    def _refuse(self, found: int, own: int) -> None:
        if found > own:
            msg = (
                f"topology {self._topology!r}: the topology manager of epoch {own} was deposed, that of epoch {found} "
                "leads now; it ends and stands by"
            )
            raise StateConflictError(msg)
