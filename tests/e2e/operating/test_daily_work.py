"""Commands on a running topology."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from heron.driver_kit.loading import open_driver
from heron.ipc.keys import new_keys
from heron.spi.driver import DriverRef
from heron.spi.statemgr import NodeKind, StateManager
from heron.state_nodes.topology_keys import encode_keys
from heron_testing.waiting import wait_until, wait_until_grown
from line_journal import Lines

if TYPE_CHECKING:
    from heron_testing.heron_run import HeronRun
    from heron_testing.sandbox import Sandbox

HERON = Path(sys.executable).with_name("heron")

_DRIVER = "heron_statemgr_localfs.state_manager:LocalFsStateManager"
_MANAGERS = {"executor", "tmanager", "metricsmgr"}


def calls(run: HeronRun) -> list[str]:
    """Return the calls that the spout has recorded."""
    path = run.out / "calls"
    return path.read_text(encoding="utf-8").splitlines() if path.exists() else []


def running(sandbox: Sandbox) -> HeronRun:
    """The running topology ``pausing`` with all its tasks."""
    run = sandbox.start("pausing.py")
    run.until(lambda: bool(calls(run)), "the spout")
    sandbox.wait_for_tasks(run, "pausing")
    return run


def processes(sandbox: Sandbox, name: str = "pausing") -> dict[tuple[int, str], int]:
    """Return the process id of each running process, by container and name."""
    return {(each["container_id"], each["process"]): each["pid"] for each in sandbox.status(name)["processes"]}


@contextmanager
def state_of(sandbox: Sandbox) -> Iterator[StateManager]:
    """Open the state manager beside the topology."""
    ref = DriverRef("statemgr", "localfs", _DRIVER, {"root": str(sandbox.home / ".heron" / "state")})
    state = open_driver(ref, StateManager)
    try:
        yield state
    finally:
        state.close()


class Follower:
    """A command that follows the topology ``pausing``."""

    def __init__(self, sandbox: Sandbox, command: str, *options: str) -> None:
        self._output_path = sandbox.root / f"{command}-followed"
        words = [str(HERON), command, "pausing", *options]
        with self._output_path.open("wb") as output:
            self.process = subprocess.Popen(words, env=sandbox.env, stdout=output, stderr=subprocess.STDOUT)

    def output(self) -> str:
        """Its output so far."""
        return self._output_path.read_text(encoding="utf-8", errors="replace")


@pytest.mark.guarantee
def test_a_running_topology_is_shown_paused_and_waited_for(sandbox: Sandbox) -> None:
    """One topology for all questions: as it runs, during a pause in which processes die, and without its manager.

    Guarantee: `status`, `metrics` and `logs` show a running topology, follow it to its end, and refuse foreign
    keys.

    Guarantee: a pause survives the death of any process.

    Guarantee: commands wait for an absent topology manager, and say that data flows on.
    """
    run = running(sandbox)
    shows_status_metrics_and_logs(sandbox, run)
    refuses_wrong_keys(sandbox)
    assert calls(run) == ["initialize"]
    keeps_a_pause(sandbox, run)
    waits_for_an_absent_topology_manager(sandbox)
    followers_end_with_the_topology(sandbox, run)
    assert not [call for call in calls(run) if call.startswith("asked")]


def shows_status_metrics_and_logs(sandbox: Sandbox, run: HeronRun) -> None:
    """As text and as JSON; wrong requests are refused with the valid values."""
    up = processes(sandbox)
    assert {pid for (_, name), pid in up.items() if name.startswith(("numbers", "count"))} == {
        each.pid for each in run.processes("instance")
    }
    assert {name for container, name in up if container == 0} == _MANAGERS
    text = sandbox.output_of("status", "pausing")
    assert "pausing (running)" in text
    assert f"{up[0, 'tmanager']}" in text

    def rows(*options: str) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads(sandbox.output_of("metrics", "pausing", "--json", *options))
        return found

    def measured() -> bool:
        executed = [each for each in sandbox.metrics("pausing", "count") if each["name"] == "execute-latency"]
        return len(executed) == 2 and all(each["rate_per_s"] and each["p99"] for each in executed)

    wait_until(measured, 30.0, "metrics of both tasks")
    assert {each["task_id"] for each in rows("--task", "1")} == {1}
    assert {"numbers", "count", ""} == {each["component"] for each in rows()}
    assert "execute-latency" in sandbox.output_of("metrics", "pausing")

    assert "count/3 | counting begins" in sandbox.output_of("logs", "pausing", "-n", "5")
    lines = [json.loads(line) for line in sandbox.output_of("logs", "pausing", "--task", "3", "--json").splitlines()]
    assert {line["who"] for line in lines} == {"count/3"}
    assert "(nearest: 'pausing'); running: 'pausing'" in sandbox.output_of("status", "pausin", code=2)


def refuses_wrong_keys(sandbox: Sandbox) -> None:
    """The command names the changed keys at once; restored keys work again."""
    with state_of(sandbox) as state:
        node = state.get(NodeKind.KEYS, "pausing")
        assert node is not None
        state.set(NodeKind.KEYS, "pausing", encode_keys(new_keys()))
        for command in ("status", "deactivate"):
            error = sandbox.output_of(command, "pausing", code=2)
            expected = "the process that listens there has other keys; the node 'keys' of the state manager was changed"
            assert expected in error
        state.set(NodeKind.KEYS, "pausing", b"{}")
        assert "the keys of topology 'pausing' cannot be read" in sandbox.output_of("deactivate", "pausing", code=2)
        state.set(NodeKind.KEYS, "pausing", node.value)
    assert sandbox.status("pausing")["state"] == "running"


def followers_end_with_the_topology(sandbox: Sandbox, run: HeronRun) -> None:
    """They see the last output; this includes `metrics --watch`. The logs remain available afterwards."""
    logs = Follower(sandbox, "logs", "-f", "-n", "1")
    watched = Follower(sandbox, "metrics", "--watch", "--component", "count")
    wait_until(logs.output, 30.0, "the last line so far")  # a follower that starts after the end has nothing to follow
    wait_until(lambda: "execute-count" in watched.output(), 30.0, "a table of metrics")
    (run.out / "stop").touch()
    run.finished()
    assert [each.process.wait(30.0) for each in (logs, watched)] == [0, 0], f"{logs.output()}\n{watched.output()}"
    assert "the topology is finished" in logs.output()
    assert "tmanager has stopped" in logs.output()
    assert "topology 'pausing' is not running" in watched.output()
    assert "the topology is finished" in sandbox.output_of("logs", "pausing")


def keeps_a_pause(sandbox: Sandbox, run: HeronRun) -> None:
    """The pause is in the plan, so it survives topology manager, stream manager and spout."""
    assert sandbox.output_of("deactivate", "pausing").strip() == "pausing is paused"
    assert sandbox.output_of("deactivate", "pausing").strip() == "pausing was paused already"
    run.until(lambda: len(calls(run)) == 2, "the spout hears of it")
    assert calls(run)[1].startswith("deactivate ")
    before = sandbox.status("pausing")
    up = processes(sandbox)
    for name in ((0, "tmanager"), (1, "stmgr"), (1, "numbers-1")):
        psutil.Process(up[name]).kill()

    def back() -> bool:
        now = sandbox.status("pausing")
        new_plan = now["plan_version"] > before["plan_version"]
        return new_plan and now["state"] == "paused" and all(task["state"] == "running" for task in now["tasks"])

    wait_until(back, 60.0, "all processes are back")
    run.until(lambda: calls(run)[2:] == ["initialize", "deactivate 0"], "the new spout hears of it")
    assert json.loads(sandbox.output_of("activate", "pausing", "--json"))["before"] == "paused"
    assert sandbox.output_of("activate", "pausing").strip() == "pausing was running already"
    run.until(lambda: calls(run)[4:] == ["activate"], "the spout goes on")
    wait_until_grown(lambda: sandbox.status("pausing")["components"][0]["emitted"], 30.0, "more tuples")


def waits_for_an_absent_topology_manager(sandbox: Sandbox) -> None:
    """The command waits for its time limit, then says that data flows on."""
    up = processes(sandbox)
    executor = psutil.Process(up[0, "executor"])
    executor.suspend()  # so that it is not restarted
    psutil.Process(up[0, "tmanager"]).kill()
    error = sandbox.output_of("status", "pausing", "--timeout", "1", code=1)
    assert "its topology manager is being restarted; data flows on; given up after 1 s" in error
    assert "being restarted" in sandbox.output_of("deactivate", "pausing", "--timeout", "1", code=1)
    threading.Timer(1.0, executor.resume).start()
    assert sandbox.status("pausing")["state"] == "running"
    up = processes(sandbox)
    tmanager = psutil.Process(up[0, "tmanager"])
    tmanager.suspend()
    assert "did not answer: nothing came within" in sandbox.output_of("metrics", "pausing", "--timeout", "1", code=1)
    tmanager.send_signal(signal.SIGCONT)
    sandbox.output_of("deactivate", "pausing")
    sandbox.output_of("activate", "pausing")


def test_commands_wait_for_a_starting_topology(sandbox: Sandbox) -> None:
    """Users need not know when a submitted topology has started."""
    run = sandbox.start("pausing.py")
    run.until(lambda: list(sandbox.home.glob(".heron/state/executionstate/pausing*")), "its state")
    sandbox.output_of("deactivate", "pausing")
    run.until(lambda: any(call.startswith("deactivate") for call in calls(run)), "the pause")
    sandbox.output_of("activate", "pausing")
    (run.out / "stop").touch()
    run.finished()


@pytest.mark.guarantee
def test_a_container_is_restarted_and_nothing_is_lost(sandbox: Sandbox) -> None:
    """One container or each in turn; the command ends when they run again; at least once, every line arrives.

    Guarantee: `heron restart` restarts containers, and at least once no line is lost.
    """
    lines = Lines(sandbox)
    lines.flow("the start")
    wait_until(lambda: len(processes(sandbox, "journal")) == 15, 30.0, "all processes")
    before = processes(sandbox, "journal")
    assert "has no container 9; it has '0', '1', '2'" in sandbox.output_of("restart", "journal", "9", code=2)
    assert processes(sandbox, "journal") == before
    assert "container 1 of journal is back after" in sandbox.output_of("restart", "journal", "1")
    after = processes(sandbox, "journal")
    assert {key for key in before if after[key] != before[key]} == {key for key in before if key[0] == 1}
    assert list(json.loads(sandbox.output_of("restart", "journal", "--json"))["restarted"]) == ["1", "2", "0"]
    wait_until(lambda: len(processes(sandbox, "journal")) == 15, 30.0, "all processes")
    last = processes(sandbox, "journal")
    assert not {key for key in after if last[key] == after[key]}
    lines.finish()
