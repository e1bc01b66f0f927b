"""Removes what a run consists of, in the reverse of the order in which a submission makes it.

The node EXECUTION_STATE goes last but for the report, and only when nothing else is left: as long as it is there, the
next command can go on where one that was killed or failed has stopped.
"""

from __future__ import annotations

import re
import shutil
import stat
from collections.abc import Callable
from functools import partial
from os import getuid
from pathlib import Path

from heron.errors import HeronError
from heron.spi.statemgr import NodeKind
from heron.spi.uploader import Uploader
from heron.state_nodes.execution_state import ExecutionState
from heron_cli.client.environment import Environment

__all__ = ["package_file", "remove_run"]

_RUN_DIR = re.compile(r"heron-[a-z0-9_]{8}")

_NODES = (
    NodeKind.TMANAGER_LOCATION,  # goes with who holds it, unless it was garbled
    NodeKind.PHYSICAL_PLAN,
    NodeKind.CHECKPOINTS,
    NodeKind.PACKING_PLAN,
    NodeKind.KEYS,
    NodeKind.TOPOLOGY,
    NodeKind.SCHEDULER_LOCATION,
)


def remove_run(
    environment: Environment, topology: str, run: ExecutionState | None, *, keep_report: bool
) -> tuple[str, ...]:
    """Removes the job, the package, the run directory and every node, as far as they are there; says what is left.

    When the job cannot be ended nothing else is touched: what runs needs it. A job of that name that is another run's,
    of another state manager, goes on. The caller holds the topology's lock.
    """
    left: list[str] = []
    run_id = run.topology_id if run else ""
    if not _attempt(left, "job", partial(environment.scheduler.kill, topology, run_id)):
        return tuple(left)
    if run:
        _attempt(left, "package", partial(_remove_package, environment.uploader, run))
        if _is_run_dir(Path(run.run_dir)):
            shutil.rmtree(run.run_dir, ignore_errors=True)
    delete = environment.statemgr.delete
    for kind in _NODES:
        _attempt(left, f"node {kind.value}/{topology}", partial(delete, kind, topology))
    if not left:
        for kind in (NodeKind.EXECUTION_STATE, *(() if keep_report else (NodeKind.REPORT,))):
            _attempt(left, f"node {kind.value}/{topology}", partial(delete, kind, topology))
    return tuple(left)


def package_file(run: ExecutionState) -> Path:
    """Where a submission keeps the package until the state says where it was uploaded to."""
    return Path(run.run_dir) / f"{run.topology}.tar.gz"


def _remove_package(uploader: Uploader, run: ExecutionState) -> None:
    uri = run.package_uri
    if not uri and _is_run_dir(Path(run.run_dir)) and package_file(run).is_file():
        # Cut off between upload and note: the same content once more has the same URI, which can then be undone.
        uri = uploader.upload(package_file(run), run.topology)
    if uri:
        uploader.undo(uri)


def _is_run_dir(path: Path) -> bool:
    """Whether it is a folder such as a submission makes: a state that was changed by hand must not remove another."""
    try:
        found = path.lstat()
    except OSError:
        return False
    private = stat.S_ISDIR(found.st_mode) and found.st_uid == getuid() and not stat.S_IMODE(found.st_mode) & 0o077
    return private and path.is_absolute() and _RUN_DIR.fullmatch(path.name) is not None


def _attempt(left: list[str], what: str, step: Callable[[], None]) -> bool:
    try:
        step()
    except HeronError as error:
        left.append(f"{what}: {error}")
        return False
    return True
