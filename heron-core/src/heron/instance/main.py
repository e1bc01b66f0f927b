"""Entry point of an instance: ``python -m heron.instance.main ROLEFILE``."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

from heron.api.definition import ComponentKind
from heron.clock import monotonic_s
from heron.driver_kit.loading import load_object
from heron.driver_kit.log import configure
from heron.driver_kit.parent_process import EXIT_USER_INIT
from heron.driver_kit.signals import Signals
from heron.instance.bolt_runner import BoltRunner
from heron.instance.garbage import collect_less, freeze_start_up
from heron.instance.gateway.gateway import Gateway
from heron.instance.queues.data_queue import PlanReceived, ReportSeen, SessionOpened
from heron.instance.runner import ComponentRunner, ComponentStartError, ComponentStoppedError
from heron.instance.spout_runner import SpoutRunner
from heron.instance.task import Task
from heron.ipc import control_pb2 as pb
from heron.ipc.machine import REAL_MACHINE, Machine
from heron.kernel.checkpoint_store import open_archive
from heron.kernel.role_process import run_role
from heron.kernel.role_spec import InstanceSpec, read_spec
from heron.kernel.settings import EngineSettings
from heron.planner.physical_plan import PhysicalPlan
from heron.planner.shed_check import sheds_somewhere

__all__ = ["process"]

_log = logging.getLogger(__name__)

_SEEN_WITHIN_S = 2.0  # how long the process waits until its failure is received; the executor reports it too
_CLOSE_WITHIN_S = 1.0
_WAIT_S = 0.1

_SHEDDING_SPOUT = "heron.instance.shedding_spout:SheddingSpoutRunner"  # most topologies need not import them
_SAMPLED_BOLT = "heron.instance.sampled_bolt:SampledBoltRunner"


def _begin(task: Task) -> None:
    freeze_start_up()
    _yield_cores(task.settings.niceness)
    task.telemetry.pauses.watch()


def _yield_cores(niceness: int) -> None:
    """Lowers the priority of this thread, and of those that user code starts: on Linux each has its own (sched(7)).

    The gateway, the other roles and the commands of an operator keep theirs, so a busy machine can be operated. A
    topology that was started with a lower priority keeps that: to raise it needs a privilege.
    """
    if sys.platform == "linux" and niceness > os.getpriority(os.PRIO_PROCESS, 0):
        os.setpriority(os.PRIO_PROCESS, 0, niceness)


def main(signals: Signals) -> int:
    """Runs one task until SIGTERM."""
    collect_less()
    spec = read_spec(Path(sys.argv[1]), InstanceSpec)
    configure(
        Path(spec.log_dir) / f"{spec.component}-{spec.task_id}.log",
        topology=spec.topology,
        container=spec.container_id,
        process="instance",
        component=spec.component,
        task=spec.task_id,
        secrets=spec.driver_secrets,
    )
    return process(spec, signals)


def process(
    spec: InstanceSpec, signals: Signals, machine: Machine = REAL_MACHINE, started: Callable[[Task], None] = _begin
) -> int:
    """Runs one task until SIGTERM; calls `started` when its component is initialised."""
    settings = EngineSettings.from_keys(spec.settings)
    gateway = Gateway(spec, settings, machine=machine)
    gateway.start(signals)
    try:
        return _run(spec, settings, gateway, signals, started)
    finally:
        gateway.close(_CLOSE_WITHIN_S)


def _run(
    spec: InstanceSpec,
    settings: EngineSettings,
    gateway: Gateway,
    signals: Signals,
    started: Callable[[Task], None],
) -> int:
    first = _first_plan(gateway, signals)
    if first is None:
        return 0
    plan, ended = first
    archive = open_archive(spec.checkpoint, spec.topology, settings.restore_timeout_s, lambda: signals.stop_requested)
    task = Task(spec, settings, gateway, plan, archive)
    try:
        _runner(task, signals).run(ended, started=partial(started, task))
    except (ComponentStartError, ComponentStoppedError) as error:
        _log.critical("%s", error)
        task.telemetry.report_failure(str(error))
        _wait_until_seen(gateway, signals)
        return EXIT_USER_INIT
    finally:
        task.keyed.close()
    return 0


def _runner(task: Task, signals: Signals) -> ComponentRunner:
    """The runner for the component's kind.

    Raises:
        ComponentStartError: when the author's file or class does not load.
    """
    try:
        component_class = task.package.component_class(task.definition.entry)
    except BaseException as error:
        line = task.errors.report("loading the topology's file", error, "correct it and run the topology again")
        raise ComponentStartError(line) from error
    is_spout = task.definition.kind is ComponentKind.SPOUT
    if sheds_somewhere(task.index.plan.topology):
        sampling = load_object(_SHEDDING_SPOUT if is_spout else _SAMPLED_BOLT, "runner")
        return cast("type[SpoutRunner | BoltRunner]", sampling)(task, signals, component_class)
    return (SpoutRunner if is_spout else BoltRunner)(task, signals, component_class)


def _first_plan(gateway: Gateway, signals: Signals) -> tuple[PhysicalPlan, bool] | None:
    """Waits for the first plan; None if the process is asked to stop before the plan arrives."""
    ended = False
    while not signals.stop_requested:
        item = gateway.data_in.get()
        if isinstance(item, PlanReceived):
            return item.plan, ended
        if isinstance(item, SessionOpened):
            ended = item.ended
        elif item is None:
            gateway.data_in.wait(_WAIT_S)
    return None


def _wait_until_seen(gateway: Gateway, signals: Signals) -> None:
    deadline_s = monotonic_s() + _SEEN_WITHIN_S
    while monotonic_s() < deadline_s and not signals.stop_requested:
        item = gateway.data_in.get()
        if isinstance(item, ReportSeen) and item.phase == pb.TASK_PHASE_FAILED:
            return
        if item is None:
            gateway.data_in.wait(_WAIT_S)


if __name__ == "__main__":
    run_role("instance", main)
