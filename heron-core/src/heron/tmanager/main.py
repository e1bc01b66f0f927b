"""Entry point of a topology manager: ``python -m heron.tmanager.main ROLEFILE``."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable
from pathlib import Path

from heron.clock import wall_s
from heron.driver_kit.large_values import open_statemgr
from heron.driver_kit.log import configure
from heron.driver_kit.signals import Signals
from heron.errors import StateConflictError
from heron.ipc.documents.status import LeaderStatus
from heron.ipc.endpoint import metricsmgr_endpoint
from heron.ipc.frames.frame_limits import CONTROL_SOCKET_BYTES
from heron.ipc.guarded_hub import open_guarded_hub
from heron.ipc.machine import REAL_MACHINE, Machine
from heron.ipc.reactor import Reactor
from heron.ipc.socket import SocketContext
from heron.kernel.checkpoint_store import open_archive
from heron.kernel.observer_threads import Hooks, ThreadedHooks
from heron.kernel.role_process import run_role
from heron.kernel.role_spec import TManagerSpec, read_spec
from heron.kernel.settings import EngineSettings
from heron.kernel.telemetry import Telemetry
from heron.spi.metricsink import Source
from heron.spi.statemgr import StateManager
from heron.state_nodes.tmanager_location import TManagerLocation
from heron.tmanager.state.lease import Lease
from heron.tmanager.state.state_store import StateStore
from heron.tmanager.topology_manager import TopologyManager, TopologyManagerResources

__all__ = ["lead", "manage"]

_LINGER_S = 0.2  # time for the last answers and orders to stop
_HOOKS_S = 1.0  # time for observers to handle the last events


def lead(
    spec: TManagerSpec,
    statemgr: StateManager,
    reactor: Reactor,
    sockets: SocketContext,
    hooks: Hooks,
    stop_requested: Callable[[], bool],
) -> Lease:
    """Sets the topology manager up on the reactor; it leads as soon as it gets the hold, unless it is to stop."""
    run_dir = Path(spec.run_dir)
    settings = EngineSettings.from_keys(spec.settings)
    hub = open_guarded_hub(sockets, settings.network_host, spec.keys)  # before its address is written
    reactor.guard(hub)
    store = StateStore(statemgr, spec.topology, spec.topology_id)
    telemetry = Telemetry(
        sockets.push_to(metricsmgr_endpoint(run_dir, spec.container_id)),
        Source(spec.topology, spec.container_id, "tmanager", spec.incarnation),
    )
    archive = open_archive(spec.checkpoint, spec.topology)
    lease = Lease(reactor, statemgr, spec.topology, stop_requested)
    location = TManagerLocation(
        hub.endpoint, spec.topology_id, os.getpid(), socket.gethostname(), spec.container_id, spec.keys.pair.public
    )
    standby_metrics = reactor.every(settings.metrics_export_s, telemetry.publish)

    def begin(epoch: int) -> None:
        standby_metrics.cancel()
        leader = LeaderStatus(spec.container_id, location.pid, location.host, epoch, wall_s())
        host = TopologyManagerResources(settings, reactor, hub, store, telemetry, hooks, archive)
        TopologyManager(host, store.take_over(leader)).begin()
        reactor.every(settings.heartbeat_s, end_if_lease_is_lost)

    def end_if_lease_is_lost() -> None:
        if lease.lost():
            msg = f"another topology manager may lead {spec.topology!r} now; this one ends and stands by"
            raise StateConflictError(msg)

    lease.take(location, begin)
    return lease


def main(signals: Signals) -> int:
    """Leads, or stands by, until SIGTERM."""
    spec = read_spec(Path(sys.argv[1]), TManagerSpec)
    configure(
        Path(spec.log_dir) / f"tmanager-{spec.container_id}.log",
        topology=spec.topology,
        container=spec.container_id,
        process="tmanager",
        secrets=(*spec.statemgr.secrets, *(spec.checkpoint.secrets if spec.checkpoint else ())),
    )
    return manage(spec, signals)


def manage(spec: TManagerSpec, signals: Signals, machine: Machine = REAL_MACHINE) -> int:
    """Leads, or stands by, until SIGTERM."""
    reactor = Reactor(machine=machine)
    settings = EngineSettings.from_keys(spec.settings)
    sockets = SocketContext(
        max_frame_bytes=CONTROL_SOCKET_BYTES, link_timeout_s=settings.network_timeout_s, machine=machine
    )
    hooks = ThreadedHooks(spec.hooks)
    statemgr = open_statemgr(spec.statemgr)
    try:
        lease = lead(spec, statemgr, reactor, sockets, hooks, lambda: signals.stop_requested)
        reactor.on_readable(signals.fileno(), reactor.stop)
        if not signals.stop_requested:
            reactor.run()
        lease.release()
    finally:
        statemgr.close()
        sockets.close(linger_s=_LINGER_S)
        hooks.close(_HOOKS_S)
    return 0


if __name__ == "__main__":
    run_role("topology manager", main)
