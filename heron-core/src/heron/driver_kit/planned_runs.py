"""Begins a run that a dry run has planned: the first container does what a submission does before containers start."""

from __future__ import annotations

import tempfile
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from heron.driver_kit.loading import open_driver
from heron.errors import StateConflictError, StateError
from heron.spi.driver import DriverRef
from heron.spi.scheduler import PlannedRun
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind, StateManager
from heron.spi.uploader import Uploader
from heron.state_nodes.execution_state import ExecutionState, decode_execution_state, encode_execution_state
from heron.state_nodes.report import decode_report

__all__ = ["begin_run", "stored_package_uri"]


def begin_run(statemgr: StateManager, uploader: DriverRef, planned: PlannedRun) -> None:
    """Upload the package and write the nodes of a planned run. It may be called again after a failure.

    Raises:
        StateError: when another run has the name, or this run was killed.
        PackageError: when the package cannot be uploaded.
    """
    run = decode_execution_state(planned.nodes[NodeKind.EXECUTION_STATE.value], planned.topology)
    _take_name(statemgr, run)
    with tempfile.TemporaryDirectory() as folder:
        package = Path(folder, "package.tar.gz")
        package.write_bytes(planned.package)
        uri = open_driver(uploader, Uploader).upload(package, run.topology)
    value = encode_execution_state(replace(run, package_uri=uri))
    statemgr.set(NodeKind.EXECUTION_STATE, run.topology, value)
    for kind, value in planned.nodes.items():
        with suppress(StateConflictError):  # written before a failure
            statemgr.set(NodeKind(kind), run.topology, value, expected=MUST_NOT_EXIST)


def stored_package_uri(statemgr: StateManager, topology: str) -> str:
    """Return where the package of a topology was uploaded; "" without one."""
    node = statemgr.get(NodeKind.EXECUTION_STATE, topology)
    return decode_execution_state(node.value, topology).package_uri if node else ""


def _take_name(statemgr: StateManager, run: ExecutionState) -> None:
    report = statemgr.get(NodeKind.REPORT, run.topology)
    if report and decode_report(report.value, run.topology).status.topology_id == run.topology_id:
        msg = f"run {run.topology_id!r} has ended; remove its objects, and make them again with another dry run"
        raise StateError(msg)
    with suppress(StateConflictError):
        value = encode_execution_state(run)
        statemgr.set(NodeKind.EXECUTION_STATE, run.topology, value, expected=MUST_NOT_EXIST)
    node = statemgr.get(NodeKind.EXECUTION_STATE, run.topology)
    holder = decode_execution_state(node.value, run.topology).topology_id if node else "that was removed"
    if holder != run.topology_id:
        msg = f"topology {run.topology!r} is run {holder!r}, not {run.topology_id!r}; remove that one with `heron kill`"
        raise StateError(msg)
