"""A process that keeps failing is given up: the status shows task, place, reason and count, and the rest goes on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from heron_testing.waiting import wait_until, wait_until_grown

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

SETTINGS = (
    *("--set", "heron.executor.restart.limit=2"),
    *("--set", "heron.metrics.export.s=0.1"),
    *("--set", "heron.stmgr.low.watermark.bytes=32768"),
    *("--set", "heron.stmgr.high.watermark.bytes=65536"),
)
REASON = "exit code 7: the table of prices is missing"


def the_task(document: dict[str, Any]) -> dict[str, Any]:
    """Return the failing task."""
    (found,) = (each for each in document["tasks"] if each["component"] == "fragile")
    return dict(found)


def seen(run: HeronRun, component: str) -> int:
    """Return the number of tuples that its present process has counted."""
    path = run.out / f"progress-{component}"
    return int(path.read_text(encoding="utf-8") or 0) if path.exists() else 0


@pytest.mark.guarantee
def test_tuples_for_a_task_that_is_given_up_wait_until_it_restarts(sandbox: Sandbox) -> None:
    """Its tuples are not dropped, other tasks go on, and `heron restart` repairs it.

    Guarantee: tuples wait for a task that is given up until it is restarted.
    """
    run = sandbox.start("given_up.py", *SETTINGS, command="submit local")
    assert run.wait() == 0, run.all_output
    wait_until(lambda: seen(run, "sound"), 60.0, "the other stream")
    wait_until(lambda: the_task(sandbox.status("given_up"))["state"] == "down", 60.0, "a task that is given up")
    task = the_task(sandbox.status("given_up"))
    assert (task["restarts"], REASON in task["last_error"]) == (2, True), task
    text = sandbox.output_of("status", "given_up")
    for output in (f"component 'fragile', task {task['task_id']} (container ", "is given up", REASON):
        assert output in text

    def culprit() -> list[dict[str, Any]]:
        return [each for each in sandbox.status("given_up")["backpressure"] if each["task_id"] == task["task_id"]]

    wait_until(culprit, 60.0, "the culprit that throttles the spout")
    assert culprit()[0]["cause"] == "the task is not running"
    wait_until_grown(lambda: seen(run, "sound"), 60.0, "the other stream, meanwhile")

    (run.out / "cured").touch()
    sandbox.output_of("restart", "given_up", str(task["container_id"]))
    wait_until(lambda: seen(run, "fragile") > 500, 60.0, "the waiting tuples, and more")
    wait_until(lambda: not culprit(), 60.0, "no culprit")
    assert the_task(sandbox.status("given_up"))["state"] == "running"
    sandbox.output_of("kill", "given_up")


def test_a_topology_that_stops_on_failure_ends_with_the_reason(sandbox: Sandbox) -> None:
    """`topology.on.failure: stop`, the default under `heron run`."""
    run = sandbox.run("given_up.py", *SETTINGS)
    assert run.process.returncode == 1, run.all_output
    assert run.report().state == "failed"
    assert "component 'fragile', task " in run.stderr
    assert f"died too often and is given up: {REASON}" in run.stderr
