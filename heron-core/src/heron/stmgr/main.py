"""Entry point of a stream manager: ``python -m heron.stmgr.main ROLEFILE``."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

from heron.clock import monotonic_s
from heron.driver_kit.log import configure
from heron.driver_kit.signals import Signals
from heron.ipc.frames.frame_limits import FrameLimits
from heron.ipc.machine import REAL_MACHINE, Machine
from heron.ipc.reactor import Reactor
from heron.ipc.socket import SocketContext
from heron.kernel.role_process import run_role
from heron.kernel.role_spec import StmgrSpec, read_spec
from heron.kernel.settings import EngineSettings
from heron.stmgr.ack_routing import AckRouting
from heron.stmgr.back_pressure import BackPressure, Reporter
from heron.stmgr.counters import TrafficCounters
from heron.stmgr.link_context import LinkContext
from heron.stmgr.local_tasks import LocalTasks
from heron.stmgr.outlet import SEGMENT_BYTES, Watermarks
from heron.stmgr.outlet_paces import OutletPaces
from heron.stmgr.router import Router
from heron.stmgr.stream_manager import StreamManager

__all__ = ["route"]


def main(signals: Signals) -> int:
    """Runs until SIGTERM."""
    read = partial(read_spec, Path(sys.argv[1]), StmgrSpec)
    spec = read()
    configure(
        Path(spec.log_dir) / f"stmgr-{spec.container_id}.log",
        topology=spec.topology,
        container=spec.container_id,
        process="stmgr",
    )
    return route(spec, read, signals)


def route(
    spec: StmgrSpec,
    read: Callable[[], StmgrSpec],
    signals: Signals,
    machine: Machine = REAL_MACHINE,
    started: Callable[[StreamManager], None] = lambda _manager: None,
) -> int:
    """Runs until SIGTERM; `read` reads the spec again. Calls `started` before the event loop runs."""
    settings = EngineSettings.from_keys(spec.settings)
    reactor = Reactor(machine=machine)
    limits = FrameLimits(settings.frame_max_bytes)
    sockets = SocketContext(
        max_frame_bytes=limits.socket_bytes, link_timeout_s=settings.network_timeout_s, machine=machine
    )
    local = LocalTasks(spec.container_id, spec.task_ids)
    acks = AckRouting(local, monotonic_s)
    marks = Watermarks(
        settings.low_watermark_bytes, settings.high_watermark_bytes, settings.hard_limit_bytes, SEGMENT_BYTES
    )
    pressure = BackPressure(
        Reporter(spec.container_id, spec.incarnation), all_spouts=settings.backpressure_spouts == "all"
    )
    router = Router(acks, marks)
    paces = OutletPaces(marks, settings.queue_least_bytes, settings.outlet_target_s)
    counters = TrafficCounters()
    context = LinkContext(spec, settings, reactor, sockets, router, counters, acks, pressure, local, paces, read)
    started(StreamManager(context))
    reactor.on_readable(signals.fileno(), reactor.stop)
    if not signals.stop_requested:
        reactor.run()
    sockets.close()
    return 0


if __name__ == "__main__":
    run_role("stream manager", main)
