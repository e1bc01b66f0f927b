"""The parts of a stream manager that all of its links share."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from heron.ipc.reactor import Reactor
from heron.ipc.socket import SocketContext
from heron.kernel.role_spec import StmgrSpec
from heron.kernel.settings import EngineSettings
from heron.stmgr.ack_routing import AckRouting
from heron.stmgr.back_pressure import BackPressure
from heron.stmgr.counters import TrafficCounters
from heron.stmgr.local_tasks import LocalTasks
from heron.stmgr.outlet_paces import OutletPaces
from heron.stmgr.router import Router

__all__ = ["FRAMES_A_ROUND", "LinkContext"]

FRAMES_A_ROUND = 16
"""The most frames that are read from one link before the other links are read."""


@dataclass(frozen=True, slots=True)
class LinkContext:
    """The event loop, the sockets, the router and the settings of one stream manager."""

    spec: StmgrSpec
    settings: EngineSettings
    reactor: Reactor
    sockets: SocketContext
    router: Router
    counters: TrafficCounters
    acks: AckRouting
    pressure: BackPressure
    local: LocalTasks
    paces: OutletPaces

    @property
    def run_dir(self) -> Path:
        """The directory of the run's sockets."""
        return Path(self.spec.run_dir)
