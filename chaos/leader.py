"""Check whether a topology manager leads and has reports of all its tasks, with the request of `heron status`."""

from __future__ import annotations

import threading
from pathlib import Path

from heron.clock import monotonic_s
from heron.errors import HeronError
from heron.ipc.keys import ClientKind
from heron.ipc.query import TManagerClient
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.tmanager_location import decode_tmanager_location
from heron.state_nodes.topology_keys import decode_keys
from heron_statemgr_localfs.state_manager import LocalFsOptions, LocalFsStateManager

__all__ = ["LeaderWatch", "leading_pid"]

_NAME = "chaos"
_ANSWER_S = 0.5
_RETRY_S = 0.02


def leading_pid(state: Path) -> int:
    """Return the process id of the leader; 0 if there is none."""
    statemgr = LocalFsStateManager(LocalFsOptions(str(state)))
    try:
        node = statemgr.get(NodeKind.TMANAGER_LOCATION, _NAME)
    finally:
        statemgr.close()
    return decode_tmanager_location(node.value, _NAME).pid if node else 0


class LeaderWatch:
    """Asks in a separate thread until a leader other than process `pid` reports that every task runs."""

    def __init__(self, state: Path, pid: int) -> None:
        self.back_at_s: float | None = None
        self._state = state
        self._pid = pid
        self._given_up = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="leader", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop asking."""
        self._given_up.set()
        self._thread.join()

    def _watch(self) -> None:
        statemgr = LocalFsStateManager(LocalFsOptions(str(self._state)))
        try:
            while not self._given_up.is_set():
                if self._leads(statemgr):
                    self.back_at_s = monotonic_s()
                    return
                self._given_up.wait(_RETRY_S)
        finally:
            statemgr.close()

    def _leads(self, statemgr: StateManager) -> bool:
        try:
            node, keys = (statemgr.get(kind, _NAME) for kind in (NodeKind.TMANAGER_LOCATION, NodeKind.KEYS))
            if node is None or keys is None:
                return False
            location = decode_tmanager_location(node.value, _NAME)
            if location.pid == self._pid:
                return False
            with TManagerClient(
                location.endpoint, decode_keys(keys.value, _NAME).connecting_as(ClientKind.READER)
            ) as ask:
                status = ask.status(_ANSWER_S)
        except HeronError:
            return False
        return bool(status.tasks) and all(each.state in ("running", "ended") for each in status.tasks)
