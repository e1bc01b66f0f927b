"""What commands show of the inside of a task, also while its component blocks."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from heron_testing.waiting import wait_until

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

WAYS = ("sleep", "wait", "read", "spin", "hold")
KILL_SOON = ("--set", "heron.executor.stop.grace.s=0.1")  # blocked components do not stop by themselves


def blocked(sandbox: Sandbox, *options: str) -> tuple[HeronRun, dict[str, dict[str, Any]]]:
    """A topology whose bolts block, and its tasks by component."""
    run = sandbox.start("blocked.py", *KILL_SOON, *options)
    run.until(lambda: all((run.out / way).exists() for way in WAYS), "all bolts block")
    status = sandbox.status("blocked")
    return run, {each["component"]: each for each in status["tasks"]}


def task_thread(sandbox: Sandbox, task: str) -> dict[str, Any]:
    """The thread of a task that runs its component."""
    answer = sandbox.output_of("stack", "blocked", task, "--json", "--timeout", "60")  # `spin` takes processors
    threads = json.loads(answer)["threads"]
    assert {"gateway", "task"} <= {each["role"] for each in threads}
    found: dict[str, Any] = threads[0]
    assert found["role"] == "task"
    return found


def place(thread: dict[str, Any]) -> tuple[str, str, str, str]:
    """State, reason, function and line of the innermost call of user code."""
    frame = [each for each in thread["frames"] if each["origin"] == "user"][-1]
    assert Path(frame["file"]).name == "blocked.py"
    return thread["state"], thread["waits_for"], frame["function"], frame["source"]


@pytest.mark.guarantee
def test_stacks_show_what_each_task_waits_for(sandbox: Sandbox) -> None:
    """The gateway thread answers while user code sleeps, waits, computes, or the topology is paused.

    Guarantee: `heron stack` shows the line in which each task stands.
    """
    run, tasks = blocked(sandbox, "--set", "heron.instance.long.call.s=0.5", "--set", "heron.instance.nice=3")
    check_priorities(run.the("instance", f"spin-{tasks['spin']['task_id']}").pid)
    check_long_calls(sandbox, tasks)
    sleep = f"sleep/{tasks['sleep']['task_id']}"
    state, reason, function, source = place(task_thread(sandbox, sleep))
    assert (state, reason, function, source) == (
        "waits",
        "the end of a sleep",
        "BlockingBolt.sleep",
        "time.sleep(3600)",
    )
    assert place(task_thread(sandbox, str(tasks["read"]["task_id"])))[:2] == ("waits", "a socket")
    state, _, function, _ = place(task_thread(sandbox, str(tasks["spin"]["task_id"])))
    assert (state in {"running", "ready"}, function) == (True, "BlockingBolt.spin")  # ready: waits for a processor

    wait = f"wait/{tasks['wait']['task_id']}"
    text = sandbox.output_of("stack", "blocked", wait)
    assert f"{wait} in container {tasks['wait']['container_id']}: pid " in text
    assert "(runs the component): waits for a lock; " in text
    user = [line.strip() for line in text.splitlines() if line.startswith("  > user     ")]
    assert user[-1].endswith("in BlockingBolt.wait")

    sandbox.output_of("deactivate", "blocked")
    one = str(tasks["one"]["task_id"])
    run.until(lambda: task_thread(sandbox, one)["waits_for"] == "input", "a task of a paused topology waits")

    check_profile(sandbox, tasks["spin"]["task_id"])
    check_refusals(sandbox, run, tasks["hold"]["task_id"])


def check_priorities(pid: int) -> None:
    """The thread that runs user code yields to all others, those of its own process too."""
    numbers = {int(each.name) for each in Path(f"/proc/{pid}/task").iterdir()}
    niceness = {number: os.getpriority(os.PRIO_PROCESS, number) for number in numbers}
    usual = os.getpriority(os.PRIO_PROCESS, 0)
    assert niceness.pop(pid) == max(3, usual)
    assert set(niceness.values()) == {usual}


def check_long_calls(sandbox: Sandbox, tasks: dict[str, dict[str, Any]]) -> None:
    """A task that can answer reports by itself that a call does not return."""
    expected = {way: tasks[way]["task_id"] for way in WAYS if way != "hold"}

    calls: dict[str, dict[str, Any]] = {}

    def all_reported() -> bool:
        found = sandbox.status("blocked")["long_calls"]
        calls.update({each["component"]: each for each in found})
        return calls.keys() == expected.keys()

    wait_until(all_reported, 30.0, "the long calls of all tasks that can report them")
    assert {name: each["task_id"] for name, each in calls.items()} == expected
    place = calls["sleep"]["place"]
    assert "/blocked.py, line " in place
    text = sandbox.output_of("status", "blocked")
    assert f"sleep/{expected['sleep']} has been in one call of process for " in text
    logged = f"task sleep/{expected['sleep']} has been in one call of process for 1 s, at {place}"
    assert sandbox.log_text(f"sleep-{expected['sleep']}.log").count(logged) == 1


def check_profile(sandbox: Sandbox, spin: int) -> None:
    """A profile names the function that computes, and writes both files."""
    out = sandbox.root / "spin.svg"
    text = sandbox.output_of("profile", "blocked", f"spin/{spin}", "--seconds", "0.5", "--out", str(out))
    user = text.partition("user code, time on a processor:")[2].partition("libraries")[0]
    assert "BlockingBolt.spin" in user
    assert "<title>BlockingBolt.spin (" in out.read_text(encoding="utf-8")
    samples = json.loads((sandbox.root / "spin.speedscope.json").read_bytes())
    assert "BlockingBolt.spin [user]" in {each["name"] for each in samples["shared"]["frames"]}
    memory = sandbox.output_of("memory", "blocked", f"spin/{spin}", "--seconds", "0")
    assert "memory of the process: " in memory


def check_refusals(sandbox: Sandbox, run: HeronRun, hold: int) -> None:
    """Native code that holds the interpreter lock leaves no thread to answer; the message has the process."""
    pid = run.the("instance", f"hold-{hold}").pid
    silent = sandbox.output_of("stack", "blocked", str(hold), "--timeout", "3", code=1)
    assert re.search(rf"task hold/{hold} has not answered within [.\d]+ s: its process \(pid {pid} on ", silent)
    assert "known: 1, 2, 3, 4, 5, 6" in sandbox.output_of("stack", "blocked", "9", code=2)
    sandbox.output_of("kill", "blocked")
    wait_until(lambda: run.process.poll() is not None, 30.0, "the end of the run")
    assert "topology 'blocked' is not running" in sandbox.output_of("stack", "blocked", "1", code=2)
