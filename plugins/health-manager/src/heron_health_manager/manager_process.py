"""Entry point of a health manager: ``python -m heron_health_manager.manager_process SPECFILE``.

Its executor starts it in container 0, with the read-only key, or in mode `act` with the key that may change the
topology. Only then it opens the drivers that an update needs. It keeps nothing: all that it knows of earlier decisions
is in the state manager.
"""

from __future__ import annotations

import gc
import logging
import sys
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from heron.clock import SystemClock
from heron.driver_kit.large_values import open_statemgr
from heron.driver_kit.loading import open_driver
from heron.driver_kit.log import configure
from heron.driver_kit.signals import Signals
from heron.errors import HeronError, PluginError
from heron.ipc.query import TManagerClient
from heron.kernel.role_process import run_role
from heron.kernel.role_spec import ServiceProcessSpec, read_spec
from heron.kernel.settings import EngineSettings
from heron.spi.driver import DriverRef
from heron.spi.health_section import HealthSection
from heron.spi.options import decode_options
from heron.spi.scheduler import Scheduler
from heron.spi.statemgr import StateManager
from heron.spi.uploader import Uploader
from heron_cli.profiles import Profile
from heron_cli.topologies.environment import Environment, ProfileChoice
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_driver_kit.native_memory import return_large_blocks
from heron_health_manager.hosts.host_reporter import HostReporter
from heron_health_manager.managing.carrier import Carrier
from heron_health_manager.managing.manager import HealthManager
from heron_health_manager.managing.pace import Pace
from heron_health_manager.managing.policy_runner import PolicyRunner
from heron_health_manager.managing.record_book import RecordBook
from heron_health_manager.managing.topology_watch import TopologyWatch

__all__ = ["main"]

_ANSWER_S = 5.0  # the topology manager answers in milliseconds, and its successor within seconds
_NEW_OBJECTS = 50_000  # observations have no cycles, and looking for some takes a fifth of the time of a round
_LOOKS = 6  # observations in the shortest look-back window; more cost time and say little more

_log = logging.getLogger(__name__)


def main(signals: Signals) -> int:
    """Looks after the topology until SIGTERM."""
    spec = read_spec(Path(sys.argv[1]), ServiceProcessSpec)
    configure(
        Path(spec.log_dir) / f"health-{spec.container_id}.log",
        topology=spec.topology,
        container=spec.container_id,
        process="health",
        secrets=tuple(text for driver in spec.drivers for text in driver.secrets),
    )
    gc.set_threshold(_NEW_OBJECTS)
    return_large_blocks()
    with signals.abrupt():  # it has nothing to finish: what it began is recorded
        section = decode_options(_mapping(spec.options.get("section")), HealthSection, "health")
        statemgr = open_statemgr(_required(spec, "statemgr"))
        try:
            _run(spec, section, statemgr)
        finally:
            statemgr.close()
    return 0


def _run(spec: ServiceProcessSpec, section: HealthSection, statemgr: StateManager) -> None:
    scheduler = open_driver(_required(spec, "scheduler"), Scheduler)
    scheduler.use_state(statemgr)
    hosts = None
    if "avoid" in scheduler.capabilities:
        hosts = HostReporter(statemgr, scheduler, (spec.topology, spec.topology_id), SystemClock())
    policies = _open_policies(spec, hosts)
    connect = partial(_connect, spec, statemgr, scheduler)
    blocked = None if hosts is None else hosts.blocked
    watch = TopologyWatch(connect(_ANSWER_S), spec.topology_id, section.components, _metrics(policies), blocked)
    carrier = None
    if spec.control:
        profile = _profile(spec)
        environment = Environment(profile, statemgr, open_driver(profile.uploader, Uploader), scheduler)
        carrier = Carrier(environment, ProfileChoice(profile.name), connect)
    book = RecordBook(statemgr, spec.topology, spec.topology_id)
    export_s = EngineSettings.from_keys(spec.settings).metrics_export_s
    pace = Pace(max(export_s, min(each.rhythm.look_back_s for each in policies) / _LOOKS))
    manager = HealthManager(section, policies, book, watch.look, carrier, SystemClock(), pace)
    _log.info("health manager begins: mode %s, policies %s", section.mode, [each.name for each in policies])
    pause = threading.Event()
    while True:
        start_s = time.process_time()
        manager.round()
        pace.took(time.process_time() - start_s)
        pause.wait(pace.period_s)


def _open_policies(spec: ServiceProcessSpec, hosts: HostReporter | None) -> tuple[PolicyRunner, ...]:
    """Open the policies; one that does not open is left out, unless it is the only one.

    The rounds of the first one are those that `hosts` reports.

    Raises:
        PluginError: when none opens.
    """
    opened: list[PolicyRunner] = []
    errors: list[str] = []
    for ref in spec.drivers:
        if ref.family == "health":
            try:
                opened.append(PolicyRunner.open(ref, hosts.report if hosts and not opened else None))
            except HeronError as error:
                _log.exception("policy %s is left out", ref.name)
                errors.append(str(error))
    if not opened:
        msg = f"no policy can be used: {'; '.join(errors) or 'the profile names none'}"
        raise PluginError(msg)
    return tuple(opened)


def _connect(
    spec: ServiceProcessSpec, statemgr: StateManager, scheduler: Scheduler, timeout_s: float
) -> RemoteTopology:
    return RemoteTopology(
        statemgr,
        scheduler,
        spec.topology,
        timeout_s,
        read_only=not spec.control,
        client_of=lambda endpoint: TManagerClient(endpoint, spec.keys),
    )


def _profile(spec: ServiceProcessSpec) -> Profile:
    """The profile that submitted the topology, with what an update needs of it."""
    return Profile(
        name=str(spec.options.get("profile", "")),
        source=Path(),
        scheduler=_required(spec, "scheduler"),
        statemgr=_required(spec, "statemgr"),
        uploader=_required(spec, "uploader"),
        packing=_required(spec, "packing"),
        metricsinks=tuple(each for each in spec.drivers if each.family == "metricsink"),
        engine=EngineSettings.from_keys(spec.settings),
        log_dir="",  # an update uses the folders of the run
        run_dir="",
        checkpoint=spec.driver("checkpoint"),
        state=spec.driver("state"),
    )


def _required(spec: ServiceProcessSpec, family: str) -> DriverRef:
    ref = spec.driver(family)
    if ref is None:
        msg = f"the spec of the health manager has no {family}; submit the topology with the same version of heron-cli"
        raise PluginError(msg)
    return ref


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _metrics(policies: Sequence[PolicyRunner]) -> frozenset[str]:
    """The names of the metrics that any policy reads; none if one reads any."""
    names = [each.metrics() for each in policies]
    return frozenset() if None in names else frozenset(name for each in names for name in each or ())


if __name__ == "__main__":
    run_role("health manager", main)
