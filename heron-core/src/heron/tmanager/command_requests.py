"""The requests of commands to a topology manager: questions about the topology, and changes of it."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable

from heron.ipc import control_pb2 as pb
from heron.ipc.documents.metrics_table import encode_metrics
from heron.ipc.documents.status import encode_status
from heron.ipc.documents.traces_table import encode_traces
from heron.ipc.envelope import Envelope
from heron.planner.code_change import decode_change
from heron.planner.key_balance import decode_owners
from heron.planner.runtime_config import decode_changes
from heron.state_nodes.plans import decode_packing_plan
from heron.tmanager.leader.instructions import Instruction
from heron.tmanager.leader.leader import Leader
from heron.tmanager.metrics.trace_store import TraceStore
from heron.tmanager.state.containers import Containers
from heron.tmanager.state.plan_publisher import PlanPublisher
from heron.tmanager.state.topology_end import TopologyEnd

__all__ = ["CommandRequests", "Handler"]

Handler = Callable[[bytes, Envelope], list[Instruction]]
"""Handles one message; gets the identity of the sender, and returns what is left to carry out."""

_log = logging.getLogger(__name__)


class CommandRequests:
    """Asks the leader, and answers. A change is confirmed when the plan and the end that follow from it are written."""

    def __init__(
        self,
        leader: Leader,
        containers: Containers,
        traces: TraceStore,
        plans: PlanPublisher,
        end: TopologyEnd,
        carry_out: Callable[[list[Instruction]], None],
    ) -> None:
        self._leader = leader
        self._containers = containers
        self._traces = traces
        self._plans = plans
        self._end = end
        self._carry_out = carry_out

    def handlers(self) -> dict[str, Handler]:
        """The handlers of all requests, by the name of the message. They raise HeronError to refuse."""
        return {
            "status_request": self._status_request,
            "metrics_request": self._metrics_request,
            "traces_request": self._traces_request,
            "change_state": self._change_state,
            "begin_update": self._begin_update,
            "change_config": self._change_config,
            "withdraw_update": self._withdraw_update,
            "take_checkpoint": self._take_checkpoint,
        }

    def _status_request(self, identity: bytes, envelope: Envelope) -> list[Instruction]:
        reply = pb.StatusReply(
            request_id=envelope.status_request.request_id, document=encode_status(self._leader.known.status())
        )
        self._containers.answer(identity, Envelope(status_reply=reply))
        return []

    def _metrics_request(self, identity: bytes, envelope: Envelope) -> list[Instruction]:
        request = envelope.metrics_request
        selection = request.component, request.task_id
        table = self._leader.known.metrics_table(*selection, by_task=request.by_task, names=request.names)
        reply = pb.MetricsReply(request_id=request.request_id, document=encode_metrics(table))
        self._containers.answer(identity, Envelope(metrics_reply=reply))
        return []

    def _traces_request(self, identity: bytes, envelope: Envelope) -> list[Instruction]:
        request = envelope.traces_request
        reply = pb.TracesReply(request_id=request.request_id, document=encode_traces(self._traces.table(request.limit)))
        self._containers.answer(identity, Envelope(traces_reply=reply))
        return []

    def _change_state(self, identity: bytes, envelope: Envelope) -> list[Instruction]:
        change = envelope.change_state
        return self._confirm(identity, change.request_id, self._leader.state_asked(change.state))

    def _begin_update(self, identity: bytes, envelope: Envelope) -> list[Instruction]:
        request = envelope.begin_update
        target = decode_packing_plan(request.document, "the packing plan of an update")
        owners = decode_owners(request.owners) if request.owners else {}
        code = decode_change(request.code) if request.code else None
        asked = self._leader.update_asked(target, request.base, owners, code)
        return self._confirm(identity, request.request_id, asked)

    def _change_config(self, identity: bytes, envelope: Envelope) -> list[Instruction]:
        request = envelope.change_config
        changes = decode_changes(request.document)
        return self._confirm(identity, request.request_id, self._leader.config_asked(changes))

    def _withdraw_update(self, identity: bytes, envelope: Envelope) -> list[Instruction]:
        request = envelope.withdraw_update
        return self._confirm(identity, request.request_id, self._leader.withdrawal_asked(request.reason))

    def _take_checkpoint(self, identity: bytes, envelope: Envelope) -> list[Instruction]:
        return self._confirm(identity, envelope.take_checkpoint.request_id, self._leader.checkpoint_asked())

    def _confirm(self, identity: bytes, request_id: int, instructions: list[Instruction]) -> list[Instruction]:
        """Carries out what a command has changed, and answers when the change is written."""
        self._carry_out(instructions)
        answer = functools.partial(self._answer_change, identity, Envelope(done=pb.Done(request_id=request_id)))
        self._plans.when_written(lambda: self._end.when_written(answer))
        return []

    def _answer_change(self, identity: bytes, done: Envelope) -> None:
        if not self._containers.answer(identity, done):
            _log.warning("a command left before the change that it requested was confirmed")
