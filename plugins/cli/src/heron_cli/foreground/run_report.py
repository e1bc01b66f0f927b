"""The options of ``heron run``, and the report that ``--report`` writes."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from heron.api.definition import TopologyDefinition
from heron.errors import UsageError
from heron_cli.topologies.environment import ProfileChoice

__all__ = ["ComponentReport", "RunReport", "RunRequest", "check_report_path", "component_reports", "write_report"]


@dataclass(frozen=True, slots=True)
class RunRequest:
    """The options of one run of the file `target`.

    The command began at `started_s` (monotonic) and `started_at_s` (wall clock).
    """

    choice: ProfileChoice
    timeout_s: float | None
    report: Path | None
    simulate: bool
    started_s: float
    started_at_s: float
    from_checkpoint: str = ""
    ui: bool = False
    seed: int | None = None
    faults: bool = False
    target: str = ""
    reload: bool = False


@dataclass(frozen=True, slots=True)
class ComponentReport:
    """The counts of a component, over all its tasks and incarnations."""

    parallelism: int
    emitted: int = 0
    executed: int = 0
    acked: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class RunReport:
    """The result of a run; times are seconds since the command began, `state` is finished, killed or failed."""

    topology: str
    id: str
    state: str
    elapsed_s: float
    first_tuple_s: float | None
    components: dict[str, ComponentReport] = field(default_factory=dict)


class Counts(Protocol):
    """An object with the counts of a component."""

    @property
    def emitted(self) -> int: ...
    @property
    def executed(self) -> int: ...
    @property
    def acked(self) -> int: ...
    @property
    def failed(self) -> int: ...


def component_reports(definition: TopologyDefinition, counts: Mapping[str, Counts]) -> dict[str, ComponentReport]:
    """Return every component of the topology with its counts; 0 where none are known."""
    reports: dict[str, ComponentReport] = {}
    for each in definition.components:
        reports[each.name] = ComponentReport(each.parallelism)
        if found := counts.get(each.name):
            reports[each.name] = ComponentReport(
                each.parallelism, found.emitted, found.executed, found.acked, found.failed
            )
    return reports


def check_report_path(path: Path) -> None:
    """Refuse a report that could not be written at the end.

    Raises:
        UsageError: when the folder does not exist or cannot be written.
    """
    if path.is_dir():
        msg = f"--report: {str(path)!r} is a folder; give a file"
        raise UsageError(msg)
    if not path.parent.is_dir():
        msg = f"--report: folder {str(path.parent)!r} does not exist; make it first"
        raise UsageError(msg)
    if not os.access(path if path.exists() else path.parent, os.W_OK):
        msg = f"--report: no permission to write {str(path)!r}; give another file"
        raise UsageError(msg)


def write_report(report: RunReport, path: Path) -> None:
    """Write the report as JSON.

    Raises:
        UsageError: when it cannot be written.
    """
    try:
        path.write_bytes(msgspec.json.format(msgspec.json.encode(report), indent=2) + b"\n")
    except OSError as error:
        msg = f"--report: {str(path)!r} cannot be written: {error.strerror}; give another file"
        raise UsageError(msg) from error
