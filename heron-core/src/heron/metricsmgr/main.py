"""Entry point of a metrics manager: ``python -m heron.metricsmgr.main ROLEFILE``."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

from heron.clock import monotonic_s
from heron.driver_kit.loading import open_driver
from heron.driver_kit.log import configure
from heron.driver_kit.signals import Signals
from heron.ipc.endpoint import executor_endpoint, metricsmgr_endpoint
from heron.ipc.frames.frame_limits import CONTROL_SOCKET_BYTES
from heron.ipc.machine import REAL_MACHINE, Machine
from heron.ipc.reactor import Reactor
from heron.ipc.socket import SocketContext
from heron.kernel.process_keys import ProcessKeys
from heron.kernel.role_process import run_role
from heron.kernel.role_spec import MetricsmgrSpec, read_spec
from heron.kernel.settings import EngineSettings
from heron.metricsmgr.host_metrics import HostMetrics
from heron.metricsmgr.metrics_manager import MetricsForwarder, MetricsManager
from heron.metricsmgr.sink_runner import SinkRunner
from heron.spi.driver import DriverRef
from heron.spi.metricsink import MetricsSink, Source

__all__ = ["collect", "gather", "open_sinks"]

_FINISH_S = 1.3  # of the two seconds that its executor allows
_QUIET_S = 0.05  # after this time without a record, all records sent before SIGTERM have arrived
_DRAIN_S = 0.3
_LINGER_S = 0.2
_SINK_CHECK_S = 1.0  # a hanging sink is reported after at most this time and `HANG_S`


def open_sinks(refs: Sequence[DriverRef], flush_s: float) -> tuple[SinkRunner, ...]:
    """Returns a runner for each sink, which opens it on its own thread: a sink may hang there too."""
    return tuple(
        SinkRunner(ref.name, partial(open_driver, ref, MetricsSink), flush_s, secrets=ref.secrets) for ref in refs
    )


def collect(
    spec: MetricsmgrSpec, reactor: Reactor, sockets: SocketContext, keys: ProcessKeys[MetricsmgrSpec]
) -> MetricsManager:
    """Opens inbox, sinks and forwarder, and registers them on the reactor."""
    run_dir = Path(spec.run_dir)
    settings = EngineSettings.from_keys(spec.settings)
    inbox = sockets.inbox(metricsmgr_endpoint(run_dir, spec.container_id))
    source = Source(spec.topology, spec.container_id, "metricsmgr", spec.incarnation)
    manager = MetricsManager(
        inbox,
        open_sinks(spec.sinks, settings.metrics_export_s),
        MetricsForwarder(reactor, sockets, executor_endpoint(run_dir, spec.container_id), keys),
        source,
        HostMetrics(reactor.machine.root),
    )
    reactor.on_readable(inbox, manager.read)
    reactor.every(settings.metrics_export_s, manager.report)
    if spec.sinks:
        reactor.every(_SINK_CHECK_S, manager.check_sinks)
    return manager


def _drain(manager: MetricsManager, reactor: Reactor) -> None:
    """Reads records that are still under way; reads once more at the end, because this process may have been paused."""
    end_s = monotonic_s() + _DRAIN_S
    quiet_s = monotonic_s() + _QUIET_S
    while True:
        before, now_s = manager.arrived, monotonic_s()
        reactor.run_once(max(0.0, min(quiet_s, end_s) - now_s))
        if manager.arrived > before:
            quiet_s = monotonic_s() + _QUIET_S
        if now_s >= min(quiet_s, end_s):
            return


def main(signals: Signals) -> int:
    """Collects until SIGTERM."""
    read = partial(read_spec, Path(sys.argv[1]), MetricsmgrSpec)
    spec = read()
    configure(
        Path(spec.log_dir) / f"metricsmgr-{spec.container_id}.log",
        topology=spec.topology,
        container=spec.container_id,
        process="metricsmgr",
        secrets=tuple(text for sink in spec.sinks for text in sink.secrets),
    )
    return gather(spec, read, signals)


def gather(
    spec: MetricsmgrSpec, read: Callable[[], MetricsmgrSpec], signals: Signals, machine: Machine = REAL_MACHINE
) -> int:
    """Collects until SIGTERM; `read` reads the spec again."""
    reactor = Reactor(machine=machine)
    timeout_s = EngineSettings.from_keys(spec.settings).network_timeout_s
    sockets = SocketContext(max_frame_bytes=CONTROL_SOCKET_BYTES, link_timeout_s=timeout_s, machine=machine)
    manager = collect(spec, reactor, sockets, ProcessKeys(spec, read))
    reactor.on_readable(signals.fileno(), reactor.stop)
    if not signals.stop_requested:
        reactor.run()
    reactor.forget(signals.fileno())
    _drain(manager, reactor)
    manager.close(_FINISH_S)
    sockets.close(linger_s=_LINGER_S)
    return 0


if __name__ == "__main__":
    run_role("metrics manager", main)
