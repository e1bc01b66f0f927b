"""The state nodes that a topology manager reads and writes; `plan_record` fences the writes of former leaders."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

from heron.api.config import takes_checkpoints
from heron.api.definition import TopologyDefinition
from heron.clock import wall_s
from heron.errors import HeronError, StateConflictError, StateError, StateUnavailableError, TopologyFailedError
from heron.ipc.documents.status import LeaderStatus, TopologyStatus
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import ENDED_STATES, PhysicalPlan, TopologyState
from heron.planner.plan_update import reconciled
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.document import node_name
from heron.state_nodes.execution_state import ExecutionState, decode_execution_state
from heron.state_nodes.plans import decode_packing_plan, decode_topology, encode_plan
from heron.state_nodes.report import LastReport, decode_report, encode_report
from heron.state_nodes.scheduler_location import decode_scheduler_location
from heron.tmanager.leader.topology_state import Takeover
from heron.tmanager.state.plan_record import PlanRecord

__all__ = ["StateStore"]

_log = logging.getLogger(__name__)

T = TypeVar("T")


class StateStore:
    """The nodes of one run of one topology."""

    def __init__(self, statemgr: StateManager, topology: str, topology_id: str) -> None:
        self._statemgr = statemgr
        self._topology = topology
        self._topology_id = topology_id
        self._record = PlanRecord(statemgr, topology, topology_id)
        self._packing: PackingPlan | None = None
        self._packing_version: int | None = None

    def take_over(self, leader: LeaderStatus) -> Takeover:
        """Takes the topology over, and returns what this leader starts from. Former leaders cannot write afterwards.

        Raises:
            StateConflictError: when another topology manager has taken over in the meantime.
            StateError: when the topology or the packing plan is missing or unreadable, or the plan cannot be claimed.
            TopologyFailedError: when the name belongs to another run, or when the plan of a topology with checkpoints
                is damaged.
        """
        troubles: list[str] = []
        submitted = self._submitted(troubles)
        self._check_run(submitted)
        definition, _ = self._required(NodeKind.TOPOLOGY, decode_topology)
        packing, self._packing_version = self._required(NodeKind.PACKING_PLAN, decode_packing_plan)
        self._packing = packing
        started_at_s = submitted.submitted_at_s if submitted else wall_s()
        deactivated = submitted is not None and submitted.deactivated
        first = TopologyState.PAUSED if deactivated else TopologyState.RUNNING
        plan, former_epoch = self._claim(definition, leader.epoch, first, troubles)
        report = self._report(plan, started_at_s, troubles)
        if plan.version and not report:
            plan, packing = self._reconcile(plan, packing)
        if report and plan.state not in ENDED_STATES:  # the plan with the end was damaged
            self._record.end(TopologyState(report.state))
        return Takeover(
            definition=definition,
            packing=packing,
            topology_id=self._topology_id,
            leader=leader,
            started_at_s=started_at_s,
            former_epoch=former_epoch,
            plan=plan if plan.version and not report else None,
            report=report,
            deactivated=deactivated,
            attached=submitted is not None and submitted.attached,
            troubles=tuple(troubles),
        )

    def save_plan(self, plan: PhysicalPlan) -> None:
        """Writes the physical plan.

        Raises:
            StateConflictError: when another leader has taken over; nothing was changed.
            StateError: when it cannot be written, or the outcome is unknown.
        """
        self._record.write(plan)

    def save_packing(self, packing: PackingPlan) -> None:
        """Writes the packing plan if it is not the one that was read or written last. Raises as `save_plan` does."""
        if packing == self._packing:
            return
        value = encode_plan(packing)
        try:
            self._packing_version = self._statemgr.set(
                NodeKind.PACKING_PLAN, self._topology, value, expected=self._packing_version
            )
        except StateConflictError:
            node = self._statemgr.get(NodeKind.PACKING_PLAN, self._topology)
            if node is None or node.value != value:  # else this leader wrote it, and the answer was lost
                raise
            self._packing_version = node.version
        self._packing = packing

    def save_end(self, report: TopologyStatus) -> None:
        """Writes the end of the topology into the plan, then the report. Raises as `save_plan` does."""
        self._record.end(TopologyState(report.state))
        self._statemgr.set(NodeKind.REPORT, self._topology, encode_report(LastReport(report)))

    def _check_run(self, submitted: ExecutionState | None) -> None:
        """Refuses to lead when a later run has the name of this one."""
        if submitted and submitted.topology_id != self._topology_id:
            msg = (
                f"topology {self._topology_id!r} is over: its name belongs to {submitted.topology_id!r} now; this "
                "host was cut off when it was killed, end what is left of it here (`heron doctor`)"
            )
            raise TopologyFailedError(msg)

    def _claim(
        self, definition: TopologyDefinition, epoch: int, first: TopologyState, troubles: list[str]
    ) -> tuple[PhysicalPlan, int]:
        """`PlanRecord.claim`. With checkpoints, the topology cannot go on without a plan that was damaged."""
        readable = len(troubles)
        plan, former_epoch = self._record.claim(definition, epoch, first, troubles)
        if takes_checkpoints(definition.config) and len(troubles) > readable:
            msg = (
                f"topology {self._topology!r}: its physical plan cannot be read, so its newest checkpoint is unknown: "
                f"{troubles[-1]}; kill it, and submit it again with --from-checkpoint latest"
            )
            raise TopologyFailedError(msg)
        return plan, former_epoch

    def _reconcile(self, plan: PhysicalPlan, packing: PackingPlan) -> tuple[PhysicalPlan, PackingPlan]:
        """Makes the two plans agree; see `reconciled`. Afterwards a former leader cannot write the packing plan."""
        updates = plan.update is not None
        plan, packing = reconciled(plan, packing)
        if updates:
            self._packing = None  # so that it is written, and has a new version
        self.save_packing(packing)
        return plan, packing

    def _required(self, kind: NodeKind, decode: Callable[[bytes, str], T]) -> tuple[T, int]:
        node = self._statemgr.get(kind, self._topology)
        if node is None:
            msg = f"topology {self._topology!r} has no node {kind.value!r} in the state manager; it was killed"
            raise StateError(msg)
        return decode(node.value, node_name(kind, self._topology)), node.version

    def _report(self, plan: PhysicalPlan, started_at_s: float, troubles: list[str]) -> TopologyStatus | None:
        """The report of the leader that ended the topology; a short one if that leader died before it wrote one."""
        ended = plan.state in ENDED_STATES
        if not ended and plan.version:
            return None  # a leader writes the end into the plan first
        former = self._optional(NodeKind.REPORT, decode_report, troubles)
        report = former.status if former else None
        states = {plan.state.value} if ended else {each.value for each in ENDED_STATES}
        if report and report.topology_id == self._topology_id and report.state in states:
            return report
        if not ended:
            return None
        failed = plan.state is TopologyState.FAILED
        return TopologyStatus(
            topology=self._topology,
            topology_id=self._topology_id,
            state=plan.state.value,
            started_at_s=started_at_s,
            error="its topology manager died before it wrote the reason; see its logs" if failed else "",
            plan_version=plan.version,
            ended_at_s=wall_s(),
        )

    def _submitted(self, troubles: list[str]) -> ExecutionState | None:
        """The execution state or its copy; None when neither can be read."""
        if state := self._optional(NodeKind.EXECUTION_STATE, decode_execution_state, troubles):
            return state
        location = self._optional(NodeKind.SCHEDULER_LOCATION, decode_scheduler_location, troubles)
        return location.run if location else None

    def _optional(self, kind: NodeKind, decode: Callable[[bytes, str], T], troubles: list[str]) -> T | None:
        """The value of a node that a leader can do without; None when it is missing or cannot be read."""
        try:
            node = self._statemgr.get(kind, self._topology)
            return decode(node.value, self._topology) if node else None
        except StateUnavailableError:
            raise
        except HeronError as error:
            troubles.append(f"a state node is not used: {error}")
            _log.warning("%s", troubles[-1])
            return None
