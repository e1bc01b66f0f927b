"""Looks at a running topology from outside, through whichever topology manager leads it at the moment."""

from __future__ import annotations

from heron.errors import HeronError
from heron.ipc.keys import ClientKeys, Speaker
from heron.ipc.query import TManagerClient
from heron.ipc.status import TopologyStatus
from heron.planner.physical_plan import ENDED_STATES
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.execution_state import ExecutionState
from heron.state_nodes.keys import decode_keys
from heron.state_nodes.report import decode_report
from heron.state_nodes.tmanager_location import decode_tmanager_location

__all__ = ["ENDED", "Watcher"]

ENDED = frozenset(state.value for state in ENDED_STATES)

_ANSWER_S = 0.5  # a topology manager answers in milliseconds; one that does not may be restarting


class Watcher:
    """Asks for the status of one run; never raises because the topology manager or the state manager is away.

    It only looks, so it speaks with the read-only key.
    """

    def __init__(self, statemgr: StateManager, run: ExecutionState) -> None:
        self._statemgr = statemgr
        self._run = run
        self._endpoint = ""
        self._client: TManagerClient | None = None

    def look(self) -> TopologyStatus | None:
        """The status now, or the report that the topology manager left, or None when neither is to be had."""
        try:
            return self._ask() or self.report()
        except HeronError:
            self.close()
            return self.report()

    def report(self) -> TopologyStatus | None:
        """The last status, which a topology manager writes before it leaves; None before that."""
        try:
            node = self._statemgr.get(NodeKind.REPORT, self._run.topology)
            return self._ours(decode_report(node.value, self._run.topology).status) if node else None
        except HeronError:
            return None

    def close(self) -> None:
        """Closes the socket; idempotent."""
        if self._client:
            self._client.close()
        self._client = None
        self._endpoint = ""

    def _ask(self) -> TopologyStatus | None:
        node = self._statemgr.get(NodeKind.TMANAGER_LOCATION, self._run.topology)
        if node is None:
            self.close()
            return None
        endpoint = decode_tmanager_location(node.value, self._run.topology).endpoint
        if self._client is None or endpoint != self._endpoint:
            self.close()
            keys = self._keys()
            if keys is None:
                return None
            self._client, self._endpoint = TManagerClient(endpoint, keys), endpoint
        return self._ours(self._client.status(_ANSWER_S))

    def _keys(self) -> ClientKeys | None:
        node = self._statemgr.get(NodeKind.KEYS, self._run.topology)
        return decode_keys(node.value, self._run.topology).connecting_as(Speaker.READER) if node else None

    def _ours(self, status: TopologyStatus) -> TopologyStatus | None:
        return status if status.topology_id == self._run.topology_id else None
