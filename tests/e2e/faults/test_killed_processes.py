"""A killed process restarts, the run goes on, and a bounded topology finishes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox


def progress(run: HeronRun) -> tuple[int, int]:
    """Return the process that counts, and its count."""
    try:
        pid, seen = (run.out / "progress").read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return 0, 0
    return int(pid), int(seen)


def flows(run: HeronRun, what: str) -> None:
    """Wait until tuples arrive: more of them, or in another process."""
    before = progress(run)
    run.until(lambda: progress(run) not in (before, (0, 0)), f"tuples after {what}", 30.0)
    pid, seen = progress(run)
    run.until(lambda: progress(run)[0] != pid or progress(run)[1] > seen, f"more tuples after {what}", 30.0)


def replaced(run: HeronRun, role: str, name: str) -> None:
    """Kill a process; wait for its successor and for tuples."""
    victim = run.the(role, name)
    command = victim.cmdline()
    victim.kill()
    run.until(
        lambda: any(words == command and each.pid != victim.pid for each, words in run.commands(role)),
        f"another {role} {name}",
        30.0,
    )
    flows(run, f"kill -9 of {role} {name}")


PROCESSES = [
    ("instance", "/pass-2"),
    ("instance", "/count-"),
    ("stmgr", "/c1/"),
    ("metricsmgr", "/c1/"),
    ("tmanager", "/c0/"),
    ("stmgr", "/c2/"),
    ("instance", "/numbers-"),
]


def test_each_process_of_a_container_is_replaced_and_the_run_finishes(sandbox: Sandbox) -> None:
    """At most once, some tuples are lost or a spout starts again, but every process comes back."""
    run = sandbox.start("steady.py")
    flows(run, "the start")
    for role, name in PROCESSES:
        replaced(run, role, name)
    (run.out / "stop").touch()
    report = run.finished(30.0)
    assert report.components["count"].executed > 0


@pytest.mark.parametrize(("role", "name"), [*PROCESSES, *(("executor", f"{number}.json") for number in range(3))])
@pytest.mark.chaos
def test_a_process_that_dies_during_the_end_does_not_prevent_it(sandbox: Sandbox, role: str, name: str) -> None:
    """A restarted process learns of the end, whichever of the two happens first."""
    run = sandbox.start("steady.py")
    flows(run, "the start")
    victim = run.the(role, name)
    (run.out / "stop").touch()
    victim.kill()
    run.finished(30.0)
