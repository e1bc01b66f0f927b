"""Effectively once: the committed output has each number once, in order, with the right count."""

from __future__ import annotations

import json
import signal
from typing import TYPE_CHECKING

import pytest

from committed_lines import PARTITIONS, check_committed, commits, committed

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox


def started(sandbox: Sandbox, interval_s: float = 0.5, *options: str, backend: str = "memory") -> HeronRun:
    """Start the topology; output is committed."""
    run = sandbox.start("exactly_once.py", *options, args=("--interval", str(interval_s), "--backend", backend))
    sandbox.wait_for_state(run, "exactly_once")
    commits(run, "at the start")
    return run


def check_exact(run: HeronRun) -> None:
    """End the run: what was counted is committed, also what came after the last periodic checkpoint."""
    (run.out / "stop").touch()
    run.finished()
    assert check_committed(run.out, PARTITIONS) > 0


def test_the_output_is_exact_without_a_fault(sandbox: Sandbox) -> None:
    """Every line that was emitted is committed at the end."""
    run = started(sandbox)
    (run.out / "stop").touch()
    components = run.finished().components
    assert check_committed(run.out, PARTITIONS) == components["read"].emitted == components["commit"].executed > 0


def kill(sandbox: Sandbox, run: HeronRun, component: str) -> None:
    """Kill a task and wait until the topology has returned to a checkpoint and goes on."""
    before = sandbox.checkpoints("exactly_once")["restores"]
    run.processes("instance", f"{component}-")[0].kill()
    run.until(
        lambda: sandbox.checkpoints("exactly_once")["restores"] > before, f"a restore after the death of {component}"
    )
    commits(run, f"after the death of {component}")


@pytest.mark.parametrize("backend", ["memory", pytest.param("lmdb", marks=pytest.mark.guarantee)])
def test_state_survives_deaths_and_moves_with_an_update(sandbox: Sandbox, backend: str) -> None:
    """Spouts and bolts come and go; positions and counts follow their key groups, and what is removed has committed.

    With `lmdb` they are in a store of each task, which a restore and an update fill from the checkpoint.

    Guarantee: effectively once, state in memory or in `lmdb` survives deaths and moves with its key groups, and the
    output stays exact.

    Guarantee: a checkpoint that cannot be stored fails with the reason, and data flows.
    """
    run = started(sandbox, backend=backend)
    fails_to_store_a_checkpoint(sandbox, run)
    kill(sandbox, run, "read")
    kill(sandbox, run, "count")
    up = sandbox.update("exactly_once", "read:3", "count:4", "commit:3")
    assert len(up["added"]) == 4
    assert up["moved_bytes"]["count"] > 0
    assert up["restored"] == ["read", "count", "commit"]
    commits(run, "after more tasks")
    down = sandbox.update("exactly_once", "read:1 count:1 commit:1")
    assert len(down["removed"]) == 7
    commits(run, "after fewer tasks")
    run.until(lambda: len(run.processes("instance")) == 3, "only these tasks run")
    gone = {each["task_id"] for each in down["removed"]}
    assert [each.name for each in run.out.glob("*-[op]*") if int(each.name.split("-")[0]) in gone] == []
    check_exact(run)


def fails_to_store_a_checkpoint(sandbox: Sandbox, run: HeronRun) -> None:
    """Data flows meanwhile, the status says why, and the next one succeeds; nothing is restored."""
    root = run.home / ".heron" / "checkpoints"
    aside = root.with_name("aside")
    before = sandbox.checkpoints("exactly_once")
    root.rename(aside)
    root.write_text("not a folder", encoding="utf-8")
    run.until(lambda: sandbox.checkpoints("exactly_once")["failed"] > before["failed"] + 1, "failed checkpoints")
    shown = sandbox.checkpoints("exactly_once")
    assert "checkpoint" in shown["last_error"]
    assert str(root) in shown["last_error"]
    root.unlink()
    aside.rename(root)
    run.until(lambda: sandbox.checkpoints("exactly_once")["complete"] > shown["complete"] + 1, "complete checkpoints")
    assert sandbox.checkpoints("exactly_once")["restores"] == before["restores"]


def test_operator_state_is_not_divided(sandbox: Sandbox) -> None:
    """A component with state of `init_state` keeps its parallelism, and the reason names the remedy."""
    run = sandbox.start("exactly_once.py", args=("--interval", "0.5", "--operator", "1"))
    sandbox.wait_for_state(run, "exactly_once")
    commits(run, "at the start")
    run.until(lambda: sandbox.checkpoints("exactly_once")["complete"] > 0, "a checkpoint")
    refused = sandbox.output_of("update", "exactly_once", "--component-parallelism", "count:3", code=2)
    assert "component 'count' keeps state in init_state, which belongs to one task" in refused
    assert "keyed_state" in refused
    moved = json.loads(sandbox.output_of("update", "exactly_once", "--container-number", "1", "--json"))
    assert {"read", "count"} & {each["component"] for each in moved["added"]}, "a task takes over what another had"
    commits(run, "in one container")
    run.processes("instance", "count-")[0].kill()
    commits(run, "after a death")
    check_exact(run)


@pytest.mark.guarantee
def test_a_later_run_goes_on_from_a_checkpoint(sandbox: Sandbox) -> None:
    """A checkpoint that was asked for survives its run: positions and counts of the next run begin there.

    Guarantee: a later run goes on from a savepoint.
    """
    run = started(sandbox)
    sandbox.output_of("checkpoints", "exactly_once", "take")
    assert json.loads(sandbox.output_of("checkpoints", "exactly_once", "list", "--json"))
    run.process.send_signal(signal.SIGINT)
    assert run.wait() == 130, run.all_output
    before = {partition: len(lines) for partition, lines in committed(run.out).items()}
    second = sandbox.start("exactly_once.py", "--from-checkpoint", "latest", args=("--interval", "0.5"))
    commits(second, "of the second run")
    (second.out / "stop").touch()
    second.finished()
    for partition, lines in committed(second.out).items():
        first = lines[0][0]
        assert first >= before[partition] > 0, "what the first run has committed does not come again"
        assert lines == [(number, number + 1) for number in range(first, first + len(lines))]
