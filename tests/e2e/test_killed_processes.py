"""A process that is killed comes back, the run goes on, and a bounded topology finishes all the same (D10)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from conftest import HeronRun, Sandbox


def progress(run: HeronRun) -> tuple[int, int]:
    """The process that counts, and how much it has counted."""
    try:
        pid, seen = (run.out / "progress").read_text(encoding="utf-8").split()
    except (OSError, ValueError):
        return 0, 0
    return int(pid), int(seen)


def flows(run: HeronRun, what: str) -> None:
    """Waits until tuples arrive: more of them, or in another process."""
    before = progress(run)
    run.until(lambda: progress(run) not in (before, (0, 0)), f"tuples after {what}", 30.0)
    pid, seen = progress(run)
    run.until(lambda: progress(run)[0] != pid or progress(run)[1] > seen, f"more tuples after {what}", 30.0)


@pytest.mark.parametrize(
    ("role", "name"),
    [
        ("instance", "/count-"),
        ("instance", "/pass-"),
        ("instance", "/numbers-"),
        ("stmgr", "/c1/"),
        ("stmgr", "/c2/"),
        ("metricsmgr", "/c1/"),
        ("tmanager", ""),
        ("executor", "0"),
        ("executor", "1"),
        ("executor", "2"),
    ],
)
def test_a_killed_process_is_replaced_and_the_run_finishes(sandbox: Sandbox, role: str, name: str) -> None:
    """Whichever it is: at most once some tuples are lost with it, but none of the processes is missed for good."""
    run = sandbox.start("steady.py")
    flows(run, "the start")
    if role == "executor":
        victim = next(each for each in run.processes(role) if f"{name}." in each.cmdline()[-1].rpartition("/")[2])
    else:
        victim = run.processes(role, name)[0]
    command = victim.cmdline()
    victim.kill()
    run.until(
        lambda: any(each.cmdline() == command and each.pid != victim.pid for each in run.processes(role)),
        f"another {role}",
        30.0,
    )
    flows(run, f"kill -9 of {role} {name}")
    (run.out / "stop").touch()
    run.finished(30.0)
    ((counted,),) = run.results("count").values()
    assert int(str(counted)) > 0
