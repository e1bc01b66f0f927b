"""A stopped process is slow, not dead: no process restarts and nothing is lost."""

from __future__ import annotations

import signal
import threading
from typing import TYPE_CHECKING

import psutil
import pytest

from line_journal import SCALED, Lines

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

KINDS = (
    (("instance", "/split-"), ("metricsmgr", "/c2/"), ("executor", "1.json")),
    (("stmgr", "/c1/"),),
    (("tmanager", "/c0/"),),
)
"""Processes that are stopped at the same time; those of a group do not depend on each other."""


def everybody(run: HeronRun) -> dict[str, int]:
    """Return all process ids by role."""
    roles = ("executor", "tmanager", "stmgr", "metricsmgr", "instance")
    return {command[-1]: process.pid for role in roles for process, command in run.commands(role)}


def stand_still(processes: list[psutil.Process], duration_s: float) -> None:
    """SIGSTOP, and SIGCONT whatever happens."""
    for each in processes:
        each.send_signal(signal.SIGSTOP)
    try:
        threading.Event().wait(duration_s)
    finally:
        for each in processes:
            each.send_signal(signal.SIGCONT)


def outlast(lines: Lines, still_s: float) -> None:
    """Stop each kind for `seconds`; in the end every process is still the same, and no line is missing."""
    run = lines.run
    lines.flow("the start")
    before = everybody(run)
    assert len(before) == 3 + 1 + 2 + 3 + 6, before
    for group in KINDS:
        stand_still([run.processes(role, name)[0] for role, name in group], still_s)
        lines.flow(f"SIGCONT of {group}")
    assert everybody(run) == before
    lines.finish()


@pytest.mark.guarantee
def test_a_stopped_process_is_not_replaced(sandbox: Sandbox) -> None:
    """3 s, with heartbeats every 0.1 s and a network timeout of 1.5 s.

    Guarantee: a process that stands still is slow, not dead.
    """
    lines = Lines(sandbox, *SCALED)
    outlast(lines, 3.0)
    output = sandbox.log_text("tmanager-0.log")
    assert "is silent" not in output, "the topology manager mistook its own stop for silence of the others'"


@pytest.mark.soak
def test_a_process_stopped_for_half_a_minute_is_not_replaced(sandbox: Sandbox) -> None:
    """30 s with the default times of the engine."""
    outlast(Lines(sandbox), 30.0)
