"""What the links of a stream manager share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from heron.ipc.reactor import Reactor
from heron.ipc.socket import SocketContext
from heron.kernel.role_spec import StmgrSpec
from heron.kernel.settings import EngineSettings
from heron.stmgr.ack_routes import AckRoutes
from heron.stmgr.back_pressure import BackPressure
from heron.stmgr.counters import Counters
from heron.stmgr.router import Router

__all__ = ["FRAMES_A_ROUND", "JOIN_BYTES", "LinkHost"]

FRAMES_A_ROUND = 16
"""So many frames are read from one link before the others have their turn."""

JOIN_BYTES = 256 * 1024
"""Segments that go the same way are joined up to this size; larger messages gain nothing (measured for ZeroMQ)."""


@dataclass(frozen=True, slots=True)
class LinkHost:
    """The event loop, the sockets, the router and the settings of one stream manager."""

    spec: StmgrSpec
    settings: EngineSettings
    reactor: Reactor
    sockets: SocketContext
    router: Router
    counters: Counters
    acks: AckRoutes
    pressure: BackPressure

    @property
    def run_dir(self) -> Path:
        """The directory in which the sockets are."""
        return Path(self.spec.run_dir)
