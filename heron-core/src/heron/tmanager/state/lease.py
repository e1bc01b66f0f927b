"""The leadership: a hold on the state node TMANAGER_LOCATION until this process ends.

A topology manager without the hold is a standby and tries again. After the end of a leader, the state manager decides
when an attempt succeeds: at once if it detects the end of the process, else when the session or lease expires.

At the end of a topology, standbys get SIGTERM before the leader gives its hold up. A standby that is slow to handle it
must not lead a topology that is over, so it looks whether the signal has arrived.
"""

from __future__ import annotations

import logging
from collections.abc import Callable

from heron.clock import monotonic_s
from heron.errors import StateConflictError, StateError
from heron.ipc.reactor import Reactor
from heron.spi.statemgr import Hold, NodeKind, StateManager
from heron.state_nodes.tmanager_location import TManagerLocation, encode_tmanager_location

__all__ = ["Lease"]

_RETRY_S = 0.1  # a restarted topology manager must lead within two seconds
_SOON_S = 5.0
_STANDBY_RETRY_S = 0.5  # a standby waits for days, so it asks the store less often, at a fraction of a lease

_log = logging.getLogger(__name__)


class Lease:
    """Tries until it has the hold; then it calls `on_taken` once, with the epoch."""

    def __init__(
        self,
        reactor: Reactor,
        statemgr: StateManager,
        topology: str,
        stop_requested: Callable[[], bool],
        now_s: Callable[[], float] = monotonic_s,
    ) -> None:
        self._reactor = reactor
        self._statemgr = statemgr
        self._topology = topology
        self._stop_requested = stop_requested
        self._now_s = now_s
        self._hold: Hold | None = None
        self._waits_since_s: float | None = None
        self._waits_for = ""

    def take(self, location: TManagerLocation, on_taken: Callable[[int], None]) -> None:
        """Takes the node now, or as soon as its holder is gone; other processes read `location` there."""
        if self._stop_requested():
            return
        try:
            value = encode_tmanager_location(location)
            self._hold = self._statemgr.hold(NodeKind.TMANAGER_LOCATION, self._topology, value)
        except StateError as error:  # another leader holds it, or the store is away or full: each of these can pass
            now_s = self._now_s()
            if self._waits_since_s is None:
                self._waits_since_s = now_s
            if str(error) != self._waits_for:
                level = logging.INFO if isinstance(error, StateConflictError) else logging.WARNING
                _log.log(level, "standing by: %s", error)
                self._waits_for = str(error)
            retry_s = _RETRY_S if now_s - self._waits_since_s < _SOON_S else _STANDBY_RETRY_S
            self._reactor.after(retry_s, lambda: self.take(location, on_taken))
            return
        if self._stop_requested():  # it came during the attempt
            self.release()
            return
        _log.info("leading, epoch %d", self._hold.epoch)
        on_taken(self._hold.epoch)

    def lost(self) -> bool:
        """Whether another topology manager may lead; `heron.tmanager.main` asks at each heartbeat, and ends then."""
        return self._hold is not None and self._hold.lost()

    def release(self) -> None:
        """Gives the hold up; idempotent."""
        if self._hold is not None:
            self._hold.release()
            self._hold = None
