"""The parts of a stream manager that all of its links share."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from heron.errors import HeronError
from heron.ipc.frames.frame_limits import FrameLimits
from heron.ipc.reactor import Reactor
from heron.ipc.socket import SocketContext
from heron.ipc.violations import Violations, violation_of
from heron.kernel.role_spec import StmgrSpec
from heron.kernel.settings import EngineSettings
from heron.stmgr.ack_routing import AckRouting
from heron.stmgr.back_pressure import BackPressure
from heron.stmgr.counters import TrafficCounters
from heron.stmgr.local_tasks import LocalTasks
from heron.stmgr.outlet_paces import OutletPaces
from heron.stmgr.router import Router

__all__ = ["FRAMES_A_ROUND", "LinkContext"]

_log = logging.getLogger(__name__)

_MOST_VIOLATIONS = 20  # between two reports

FRAMES_A_ROUND = 16
"""The most frames that are read from one link before the other links are read."""


@dataclass(frozen=True, slots=True)
class LinkContext:
    """The event loop, the sockets, the router and the settings of one stream manager.

    Each kind of link uses most of its parts, and only the process makes it.
    """

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
    read_spec: Callable[[], StmgrSpec]
    """Reads the spec file again, whose keys may have changed."""
    violations: list[str] = field(default_factory=list)
    """The sessions that ended because of a frame, for people; the stream manager reports them as events."""
    refusals: Violations = field(default_factory=lambda: Violations(_log))
    """The frames that broke the protocol, by link and kind."""

    @property
    def limits(self) -> FrameLimits:
        """The limits of frames."""
        return FrameLimits(self.settings.frame_max_bytes)

    def note_violation(self, link: str, error: HeronError, message: str, *, reported: bool = True) -> None:
        """Logs and counts a frame that ended its session; keeps the message for the next report if it is `reported`."""
        self.counters.refused_frames += 1
        self.refusals.note(link, violation_of(error), message)
        if reported and len(self.violations) < _MOST_VIOLATIONS:
            self.violations.append(message)

    @property
    def run_dir(self) -> Path:
        """The directory of the run's sockets."""
        return Path(self.spec.run_dir)
