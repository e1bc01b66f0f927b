"""The parallelism of a running topology changes: no tuple is lost or doubled, and what cannot start changes nothing."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from tallies import check_tallies

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox


ATMOST, ATLEAST = "ATMOST_ONCE", "ATLEAST_ONCE"


def flows(run: HeronRun, sandbox: Sandbox, what: str) -> None:
    """Wait until more tuples are counted."""
    run.grows(lambda: sandbox.executed("updating", "tally"), f"tuples {what}", 300)


def started(sandbox: Sandbox, mode: str = ATMOST, *options: str, skewed: bool = False) -> HeronRun:
    """Start the topology; its tuples flow."""
    run = sandbox.start("updating.py", *options, args=("--mode", mode, "--skewed", str(int(skewed))))
    sandbox.wait_for_state(run, "updating")
    flows(run, sandbox, "at the start")
    return run


def check_exact(run: HeronRun) -> None:
    """End the run: each number has been counted once, and the report has the counts of removed tasks too."""
    (run.out / "stop").touch()
    components = run.finished().components
    assert check_tallies(run) == components["numbers"].emitted == components["tally"].executed > 0


def limits(run: HeronRun) -> list[str]:
    """Return the values that the tasks of ``pass`` know."""
    return [path.read_text(encoding="utf-8") for path in sorted(run.out.glob("limit-*"))]


@pytest.mark.guarantee
def test_a_value_changes_in_a_running_topology_and_stays(sandbox: Sandbox) -> None:
    """Tasks hear of it without a restart. A task that restarts has it, also under another topology manager.

    Guarantee: a new value of the configuration reaches running tasks and stays.
    """
    run = started(sandbox)
    assert limits(run) == ["None", "None"]
    words = ("update", "updating", "--runtime-config")
    dry = sandbox.output_of(*words, "pass:limit=7", "--dry-run")
    assert dry == "pass: limit: no value -> 7\n"
    assert "give either" in sandbox.output_of(*words, "limit=1", "--component-parallelism", "pass:3", code=2)
    before = len(run.processes("instance"))
    sandbox.output_of(*words, "pass:limit=7")
    run.until(lambda: limits(run) == ["7", "7"], "the value")
    assert len(run.processes("instance")) == before
    run.processes("tmanager")[0].kill()
    run.until(lambda: sandbox.output_of(*words, "limit=1", "--json") != "", "another topology manager")
    for path in run.out.glob("limit-*"):
        path.unlink()
    run.processes("instance", "pass-")[0].kill()
    run.until(lambda: limits(run) == ["7"], "the value in a new process: the component's own comes first")
    assert "nothing to change" in sandbox.output_of(*words, "pass:limit=7")


@pytest.mark.parametrize("mode", [ATMOST, pytest.param(ATLEAST, marks=pytest.mark.guarantee)])
def test_tasks_and_containers_come_and_go_and_no_tuple_is_lost(sandbox: Sandbox, mode: str) -> None:
    """Up with a new container, all components, down to one task: exact counts, and nothing is replayed.

    Guarantee: tasks and containers come and go while data flows; nothing is lost or replayed.

    Guarantee: an update that is not possible changes nothing.
    """
    run = started(sandbox, mode, "--set", "engine.heron.executor.restart.limit=1")
    up = sandbox.update("updating", "pass:4", "tally:2")
    assert up["added_containers"], "the new tasks do not fit into the first container"
    assert up["moved_key_groups"] == {"pass": 512}
    flows(run, sandbox, "after more tasks")
    grown = sandbox.update("updating", "numbers:2")
    assert [each["component"] for each in grown["added"]] == ["numbers"]
    flows(run, sandbox, "from two spouts")
    down = sandbox.update("updating", "pass:1 tally:1")
    assert {each["component"] for each in down["removed"]} == {"pass", "tally"}
    flows(run, sandbox, "after fewer tasks")
    run.until(lambda: len(run.processes("instance")) == 4, "the end of the processes of removed tasks")
    assert sandbox.update("updating", "pass:1")["took_s"] == 0.0, "nothing to change"
    again = sandbox.update("updating", "pass:3")
    used = {each["task_id"] for one in (up, grown, down) for each in (*one["added"], *one["removed"])}
    assert used.isdisjoint(each["task_id"] for each in again["added"])
    flows(run, sandbox, "after the last update")
    assert all(each["failed"] == 0 for each in sandbox.status("updating")["components"])
    refuses_what_is_not_possible(sandbox, run)
    check_exact(run)


def refuses_what_is_not_possible(sandbox: Sandbox, run: HeronRun) -> None:
    """Each mistake has one message; a task that does not start withdraws the update."""

    def refusal(parallelism: str, code: int = 2) -> str:
        return sandbox.output_of("update", "updating", "--component-parallelism", parallelism, code=code)

    assert "there is no component 'pas' (nearest: 'pass')" in refusal("pas:2")
    assert "exceeds topology.key.groups, 1024 key groups" in refusal("pass:1025")
    assert "its parallelism can only grow" in refusal("numbers:1")
    (run.out / "broken").touch()
    withdrawn = refusal("pass:4", code=1)
    assert "was withdrawn, nothing has changed" in withdrawn
    assert "this task does not start" in withdrawn
    (run.out / "broken").unlink()
    assert {each["name"]: each["parallelism"] for each in sandbox.status("updating")["components"]}["pass"] == 3
    flows(run, sandbox, "after the withdrawal")
    sandbox.output_of("deactivate", "updating")
    assert "is paused; only a running topology can be updated" in refusal("pass:4")
    sandbox.output_of("activate", "updating")
    sandbox.update("updating", "pass:4")


def test_tasks_move_to_new_containers_and_back(sandbox: Sandbox) -> None:
    """A task with the same index replaces each that moves, the spout stays, and no tuple is lost."""
    run = started(sandbox, ATLEAST)
    words = ("update", "updating", "--container-number")
    assert "container number 0 is not an integer of 1 or more" in sandbox.output_of(*words, "0", code=2)
    assert "exceeds the number of instances, 4; lower it to 4" in sandbox.output_of(*words, "5", code=2)
    out = sandbox.update("updating", containers=3)
    assert (out["added_containers"], out["after"]) == ([2, 3], out["before"])
    moved = sorted(each["component"] for each in out["added"])
    assert moved == sorted(each["component"] for each in out["removed"])
    assert "numbers" not in moved
    flows(run, sandbox, "in three containers")
    back = sandbox.update("updating", "pass:3", containers=1)
    assert (back["removed_containers"], back["after"]["pass"]) == ([2, 3], 3)
    flows(run, sandbox, "in one container")
    assert sandbox.update("updating", containers=1)["took_s"] == 0.0, "nothing to change"
    assert all(each["failed"] == 0 for each in sandbox.status("updating")["components"])
    check_exact(run)


@pytest.mark.guarantee
def test_key_groups_move_from_the_busy_task_to_the_idle_one(sandbox: Sandbox) -> None:
    """Nothing is lost or replayed, and the loads are even afterwards; another call finds nothing to do.

    Guarantee: `--rebalance` moves key groups from a busy task to an idle one.
    """
    run = started(sandbox, ATLEAST, skewed=True)
    words = ("update", "updating", "--rebalance")
    done = json.loads(sandbox.output_of(*words, "pass", "--json"))
    busy, idle = sorted(done["loads"], key=lambda each: -each["now_per_s"])
    assert busy["now_per_s"] > 2 * idle["now_per_s"] > 0
    assert busy["expected_per_s"] < 1.2 * idle["expected_per_s"]
    assert done["moved_key_groups"]["pass"] > 100
    assert not done["added"] + done["removed"]
    flows(run, sandbox, "with other owners")
    after = json.loads(sandbox.output_of(*words, "pass", "--dry-run", "--json"))
    loads = [each["now_per_s"] for each in after["loads"]]
    assert max(loads) < 1.5 * min(loads)
    assert "give either" in sandbox.output_of(*words, "pass", "--container-number", "2", code=2)
    assert all(each["failed"] == 0 for each in sandbox.status("updating")["components"])
    check_exact(run)


def test_a_new_topology_manager_goes_on_with_the_update(sandbox: Sandbox) -> None:
    """It reads the phase from the plan; the command waits for the outcome."""
    run = started(sandbox)
    (run.out / "wait").touch()
    words = ("updating", "--component-parallelism", "pass:4", "--json")
    asked = sandbox.start_command("update", *words)
    run.until(lambda: (sandbox.status("updating")["update"] or {}).get("phase") == "prepare", "the first phase")
    second = sandbox.output_of("update", "updating", "--component-parallelism", "pass:3", code=2)
    assert "is in phase prepare and waits for" in second
    before = run.the("tmanager").pid
    run.the("tmanager").kill()
    run.until(lambda: [each.pid for each in run.processes("tmanager")] not in ([], [before]), "another manager")
    (run.out / "wait").unlink()
    assert asked.wait(90) == 0, asked.all_output
    assert {each["name"]: each["parallelism"] for each in sandbox.status("updating")["components"]}["pass"] == 4
    flows(run, sandbox, "after the update")
    check_exact(run)
