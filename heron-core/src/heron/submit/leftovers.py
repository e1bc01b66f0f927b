"""What a dead run left in the state manager, and whether a run is dead at all."""

from __future__ import annotations

import logging
import shutil
import threading
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from functools import partial

from heron.clock import monotonic_s
from heron.errors import HeronError, StateError, UsageError
from heron.spi.scheduler import SchedulerState
from heron.spi.statemgr import Hold, NodeKind, StateManager
from heron.submit.environment import Environment
from heron.submit.execution_state import ExecutionState, decode_execution_state

__all__ = ["end_run", "make_room"]

_log = logging.getLogger(__name__)

_LOCK_WAIT_S = 2.0  # a command that finds the topology running gives its lock back within milliseconds
_LOCK_RETRY_S = 0.02

_NODES = (
    NodeKind.SCHEDULER_LOCATION,
    NodeKind.PHYSICAL_PLAN,
    NodeKind.CHECKPOINTS,
    NodeKind.PACKING_PLAN,
    NodeKind.TOPOLOGY,
    NodeKind.REPORT,
    NodeKind.KEYS,
    NodeKind.EXECUTION_STATE,  # last: while it is there, what is left of the others can be traced
)


def make_room(environment: Environment, topology: str) -> str:
    """Removes what a dead run of that name left behind; returns a note about it, or "" when there was nothing.

    The caller holds the topology's lock.

    Raises:
        UsageError: when a topology of that name is running.
    """
    statemgr = environment.statemgr
    state = _execution_state(statemgr, topology)
    alive = statemgr.get(NodeKind.TMANAGER_LOCATION, topology) is not None
    if alive or environment.scheduler.status(topology)[0] is SchedulerState.RUNNING:
        raise UsageError(_running(topology, state))
    if state is None and statemgr.get(NodeKind.TOPOLOGY, topology) is None:
        statemgr.delete(NodeKind.REPORT, topology)
        return ""
    _remove_run(environment, topology, state)
    who = f" of run {state.topology_id}" if state else ""
    return f"removed what was left of topology {topology!r}{who}, which had ended without tidying up"


def end_run(environment: Environment, state: ExecutionState) -> None:
    """Ends and removes this run, unless another command has already done so and gave the name to another run."""
    with ExitStack() as stack:
        if hold := _lock_soon(environment.statemgr, state):
            stack.callback(hold.release)
        present = _execution_state(environment.statemgr, state.topology)
        if present is None or present.topology_id == state.topology_id:
            _remove_run(environment, state.topology, state)


def _remove_run(environment: Environment, topology: str, state: ExecutionState | None) -> None:
    """Removes the job, the package and every node of a run, as far as they are there; failures are logged."""
    _attempt(f"job of topology {topology}", partial(environment.scheduler.kill, topology))
    if state:
        _attempt(f"package of topology {topology}", partial(environment.uploader.undo, state.package_uri))
        shutil.rmtree(state.run_dir, ignore_errors=True)
    for kind in _NODES:
        _attempt(f"node {kind.name} of topology {topology}", partial(environment.statemgr.delete, kind, topology))


def _attempt(what: str, step: Callable[[], None]) -> None:
    try:
        step()
    except HeronError as error:
        _log.warning("%s is left behind: %s", what, error)


def _lock_soon(statemgr: StateManager, state: ExecutionState) -> Hold | None:
    """The topology's lock, or None when another command keeps it: that one refuses while this run goes on."""
    deadline = monotonic_s() + _LOCK_WAIT_S
    pause = threading.Event()
    while True:
        try:
            return statemgr.hold(NodeKind.LOCK, state.topology, state.topology_id.encode())
        except HeronError as error:
            if monotonic_s() > deadline:
                _log.warning("topology %s is ended without its lock: %s", state.topology, error)
                return None
            pause.wait(_LOCK_RETRY_S)


def _execution_state(statemgr: StateManager, topology: str) -> ExecutionState | None:
    node = statemgr.get(NodeKind.EXECUTION_STATE, topology)
    if node is None:
        return None
    try:
        return decode_execution_state(node.value, topology)
    except StateError as error:
        _log.warning("%s", error)
        return None


def _running(topology: str, state: ExecutionState | None) -> str:
    who = ""
    if state:
        since = datetime.fromtimestamp(state.submitted_at_s, UTC).isoformat(sep=" ", timespec="seconds")
        who = f" (id {state.topology_id}, since {since}, by {state.user} on {state.host})"
    return f"topology {topology!r} is already running{who}; stop it, or give this one another name"
