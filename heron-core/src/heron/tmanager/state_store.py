"""What a topology manager reads from the state manager and writes into it."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TypeVar

import msgspec

from heron.clock import wall_s
from heron.errors import HeronError, StateError, StateUnavailableError
from heron.ipc.status import TopologyStatus, decode_status, encode_status
from heron.planner.codec import decode_packing_plan, decode_physical_plan, decode_topology, encode
from heron.planner.physical_plan import PhysicalPlan
from heron.spi.statemgr import NodeKind, StateManager
from heron.tmanager.inheritance import Inheritance
from heron.tmanager.topology_state import ENDED

__all__ = ["StateStore"]

_ENDED = frozenset(phase.value for phase in ENDED)

_log = logging.getLogger(__name__)

T = TypeVar("T")


class _Submitted(msgspec.Struct):
    """The part of the command's note on a run (`heron.submit.execution_state`) that is for the topology manager."""

    submitted_at_s: float
    deactivated: bool = False


class StateStore:
    """The nodes of one run of one topology."""

    def __init__(self, statemgr: StateManager, topology: str, topology_id: str) -> None:
        self._statemgr = statemgr
        self._topology = topology
        self._topology_id = topology_id

    def inheritance(self, epoch: int) -> Inheritance:
        """Everything that a leader of this epoch begins with.

        Raises:
            StateError: when topology or packing plan are not there or cannot be read.
        """
        place = f"of topology {self._topology!r}"
        troubles: list[str] = []
        submitted = self._submitted(troubles)
        return Inheritance(
            definition=decode_topology(self._required(NodeKind.TOPOLOGY), f"definition {place}"),
            packing=decode_packing_plan(self._required(NodeKind.PACKING_PLAN), f"packing plan {place}"),
            topology_id=self._topology_id,
            epoch=epoch,
            started_at_s=submitted.submitted_at_s,
            plan=self._plan(troubles),
            report=self._report(troubles),
            deactivated=submitted.deactivated,
            troubles=tuple(troubles),
        )

    def save_plan(self, plan: PhysicalPlan) -> None:
        """Writes the physical plan.

        Raises:
            StateError: when it cannot be written, or it is unknown whether it was.
        """
        self._statemgr.set(NodeKind.PHYSICAL_PLAN, self._topology, encode(plan))

    def save_report(self, report: TopologyStatus) -> None:
        """Writes the report. Raises as `save_plan` does."""
        self._statemgr.set(NodeKind.REPORT, self._topology, encode_status(report))

    def _required(self, kind: NodeKind) -> bytes:
        node = self._statemgr.get(kind, self._topology)
        if node is None:
            msg = f"topology {self._topology!r} has no node {kind.value!r} in the state manager; it was killed"
            raise StateError(msg)
        return node.value

    def _plan(self, troubles: list[str]) -> PhysicalPlan | None:
        """A former leader's plan of this run; one that cannot be read is made anew."""
        plan = self._former(NodeKind.PHYSICAL_PLAN, lambda data: decode_physical_plan(data, "physical plan"), troubles)
        return plan if plan and plan.topology_id == self._topology_id and plan.state.value not in _ENDED else None

    def _report(self, troubles: list[str]) -> TopologyStatus | None:
        report = self._former(NodeKind.REPORT, decode_status, troubles)
        return report if report and report.topology_id == self._topology_id and report.state in _ENDED else None

    def _submitted(self, troubles: list[str]) -> _Submitted:
        for kind in (NodeKind.EXECUTION_STATE, NodeKind.SCHEDULER_LOCATION):  # the second is a copy of the first
            found = self._former(kind, lambda data: msgspec.json.decode(data, type=_Submitted), troubles)
            if found:
                return found
        return _Submitted(wall_s())

    def _former(self, kind: NodeKind, decode: Callable[[bytes], T], troubles: list[str]) -> T | None:
        """What can be done without, when it is not there or cannot be read."""
        try:
            node = self._statemgr.get(kind, self._topology)
            return decode(node.value) if node else None
        except StateUnavailableError:
            raise
        except (HeronError, msgspec.MsgspecError) as error:
            text = f"node {kind.value}/{self._topology} is not used: {error}"
            _log.warning("%s", text)
            troubles.append(text)
            return None
