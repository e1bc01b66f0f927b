"""The main function of an executor: runs one container to its end."""

from __future__ import annotations

import logging
import signal
import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

from heron.driver_kit.large_values import open_statemgr
from heron.driver_kit.loading import open_driver
from heron.driver_kit.log import configure
from heron.driver_kit.private_files import make_private_dir
from heron.driver_kit.process_starter import PROCESS_START, ProcessStarter
from heron.driver_kit.signals import Signals
from heron.errors import HeronError, StateError
from heron.executor.container_keys import ContainerKeys
from heron.executor.container_processes import container_processes
from heron.executor.executor import EXIT_ENDED, Executor, ExecutorContext, RoleCommand
from heron.executor.task_packages import TaskPackages
from heron.executor.workspace import Workspace
from heron.ipc.frames.frame_limits import CONTROL_SOCKET_BYTES
from heron.ipc.machine import REAL_MACHINE, Machine
from heron.ipc.reactor import Reactor
from heron.ipc.socket import SocketContext
from heron.kernel.observer_threads import ThreadedHooks
from heron.kernel.role_process import run_role
from heron.kernel.role_spec import read_spec
from heron.kernel.settings import EngineSettings
from heron.planner.packing_plan import PackingPlan
from heron.planner.physical_plan import ENDED_STATES
from heron.spi.scheduler import ContainerSpec
from heron.spi.statemgr import NodeKind, StateManager, Versioned
from heron.spi.uploader import Uploader
from heron.state_nodes.document import node_name
from heron.state_nodes.plans import decode_packing_plan, decode_physical_plan
from heron.state_nodes.topology_keys import decode_key_ring

__all__ = ["SIGNALS", "execute", "is_over", "role_command", "run_container"]

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD)

_HOOKS_S = 0.5  # the time in which observers may handle the last events

_log = logging.getLogger(__name__)


def role_command(module: str, spec_file: Path) -> tuple[str, ...]:
    """The command line of a process."""
    return sys.executable, "-P", "-m", module, str(spec_file)


def execute(
    spec: ContainerSpec,
    signals: Signals,
    command: RoleCommand = role_command,
    starter: ProcessStarter | None = None,
    machine: Machine = REAL_MACHINE,
) -> int:
    """Runs a container to its end and returns the exit code; `signals` must include SIGCHLD.

    `starter` starts its processes, which use their own `machine`.

    Raises:
        HeronError: when the container cannot start; no process is left running.
    """
    workspace = Workspace(Path(spec.run_dir), spec.container_id)
    try:
        workspace.make()
        with signals.abrupt():
            statemgr = open_statemgr(spec.statemgr)
        try:
            code = _run(spec, signals, command, starter or ProcessStarter(), statemgr, workspace, machine)
        finally:
            statemgr.close()
    except SystemExit:  # SIGTERM before the container ran
        workspace.remove()
        raise
    except Exception as error:
        workspace.clear()
        workspace.leave_error(str(error) if isinstance(error, HeronError) else f"{type(error).__name__}: {error}")
        raise
    workspace.remove()
    return code


def _run(
    spec: ContainerSpec,
    signals: Signals,
    command: RoleCommand,
    starter: ProcessStarter,
    statemgr: StateManager,
    workspace: Workspace,
    machine: Machine,
) -> int:
    settings = EngineSettings.from_keys(spec.settings)
    if settings.process_start == "exec":
        starter.close(f"{PROCESS_START} is exec")
    with signals.abrupt():  # a store may answer late, and SIGTERM must not wait for it
        if spec.attempt > 1 and spec.container_id > 0 and is_over(statemgr, spec):
            _log.info("container %d does not start again: the topology has ended", spec.container_id)
            starter.close("the topology has ended")
            return EXIT_ENDED
        packing = _packing_plan(statemgr, spec.topology)
        processes = container_processes(spec.container_id, packing, settings.standbys, spec.services)
        keys = _keys(statemgr, spec.topology)
        packages = {each.instance.package for each in processes if each.instance}
        if packages:
            uploader = open_driver(spec.uploader, Uploader)
            for package in sorted(packages):
                workspace.fetch_package(uploader, package or spec.package_uri, submitted=not package)
    reactor = Reactor(machine=machine)
    sockets = SocketContext(
        max_frame_bytes=CONTROL_SOCKET_BYTES, link_timeout_s=settings.network_timeout_s, machine=machine
    )
    hooks = ThreadedHooks(spec.hooks)
    fetched = TaskPackages(reactor, workspace, spec.uploader, spec.package_uri, packages)
    context = ExecutorContext(spec, keys, settings, reactor, sockets, statemgr, workspace, hooks, starter, fetched)
    executor = Executor(context, processes, command)

    def handle_signals() -> None:
        caught = signals.read()
        if signal.SIGCHLD in caught:
            executor.take_ended()
        if signals.stop_requested:
            executor.terminate()

    reactor.on_readable(signals.fileno(), handle_signals)
    try:
        executor.start()
        reactor.run()
    finally:
        executor.close()
        sockets.close()
        hooks.close(_HOOKS_S)
    return executor.exit_code or 0


def is_over(statemgr: StateManager, spec: ContainerSpec) -> bool:
    """Whether the topology has ended; a container that died while it stopped would wait for an order for ever.

    Raises:
        StateUnavailableError: when the store does not answer.
    """
    node = statemgr.get(NodeKind.PHYSICAL_PLAN, spec.topology)
    if node is None:
        return False
    try:
        plan = decode_physical_plan(node.value, node_name(NodeKind.PHYSICAL_PLAN, spec.topology))
    except StateError:
        return False  # the leader reports a damaged plan
    return plan.topology_id == spec.topology_id and plan.state in ENDED_STATES


def _packing_plan(statemgr: StateManager, topology: str) -> PackingPlan:
    node = _required(statemgr, NodeKind.PACKING_PLAN, topology, "packing plan")
    return decode_packing_plan(node.value, node_name(NodeKind.PACKING_PLAN, topology))


def _keys(statemgr: StateManager, topology: str) -> ContainerKeys:
    node = _required(statemgr, NodeKind.KEYS, topology, "keys")
    return ContainerKeys(decode_key_ring(node.value, topology), node.version)


def _required(statemgr: StateManager, kind: NodeKind, topology: str, what: str) -> Versioned:
    node = statemgr.get(kind, topology)
    if node is None:
        msg = (
            f"topology {topology!r} has no {what} in the state manager: it was killed, or this container uses "
            "another root of the state manager than the command that submitted it"
        )
        raise StateError(msg)
    return node


def run_container(starter: ProcessStarter) -> NoReturn:
    """Runs the container of the spec file that is the only argument, and ends this process."""
    run_role("executor", partial(_main, starter), SIGNALS)


def _main(starter: ProcessStarter, signals: Signals) -> int:
    spec_file = Path(sys.argv[1])
    spec = read_spec(spec_file, ContainerSpec)
    if spec_file.parent == Path(spec.run_dir):
        spec_file.unlink(missing_ok=True)  # it was written for this process only, and contains secrets
    log_dir = Path(spec.log_dir)
    make_private_dir(log_dir)
    configure(
        log_dir / f"executor-{spec.container_id}.log",
        topology=spec.topology,
        container=spec.container_id,
        process="executor",
        secrets=(
            *spec.statemgr.secrets,
            *spec.uploader.secrets,
            *(text for service in spec.services for driver in service.drivers for text in driver.secrets),
        ),
    )
    if starter.obstacle:
        _log.info("processes start as new interpreters: %s", starter.obstacle)
    return execute(spec, signals, starter=starter)
