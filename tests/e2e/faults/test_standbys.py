"""Standby topology managers on one machine with state in files: killed, stopped, deposed and continued."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import psutil
import pytest

from heron.spi.statemgr import NodeKind
from heron_statemgr_localfs.state_manager import LocalFsOptions, LocalFsStateManager
from standby_run import StandbyRun, has_ended

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox


@pytest.fixture
def state(sandbox: Sandbox) -> Iterator[LocalFsStateManager]:
    """The state of all runs of the sandbox."""
    found = LocalFsStateManager(LocalFsOptions(str(sandbox.home / ".heron" / "state")))
    yield found
    found.close()


def takeovers(sandbox: Sandbox) -> int:
    """Return how many events say that a topology manager has taken over."""
    return sandbox.log_text("events-*.jsonl").count("tmanager-took-over")


@pytest.mark.guarantee
def test_standbys_take_over_and_data_flows_on(sandbox: Sandbox, state: LocalFsStateManager) -> None:
    """The leader is killed, then all of them, then the leader's container; `heron kill` still ends them.

    Guarantee: a standby takes over, and data flows on.
    """
    standby_run = StandbyRun(sandbox, state)
    first = standby_run.present()
    psutil.Process(first.pid).kill()
    second, _ = standby_run.successor(first, "a kill")
    standby_run.flows_until(lambda: len(standby_run.managers()) == 3, "the killed topology manager is a standby")
    standby_run.flows_until(lambda: takeovers(sandbox) == 1, "its event, which a kill would lose")

    everybody = standby_run.managers()
    for each in everybody:
        each.kill()
    third, _ = standby_run.successor(second, "a kill of all")
    standby_run.flows_until(lambda: len(standby_run.managers()) == 3, "all are back")

    containers = {each.pid: each.parent() for each in standby_run.managers()}
    executor = containers[third.pid]
    assert executor is not None
    executor.kill()
    fourth, _ = standby_run.successor(third, "a kill of its container")
    standby_run.until(lambda: len(standby_run.managers()) == 3, "its container is back")

    status: dict[str, object] = {}

    def whole() -> bool:
        status.update(standby_run.status())
        standbys = status["standbys"]
        return isinstance(standbys, list) and [each["state"] for each in standbys] == ["running"] * 2

    standby_run.until(whole, "every standby has reported")
    leader = status["leader"]
    assert isinstance(leader, dict)
    assert (leader["container_id"], leader["pid"], leader["epoch"]) == (fourth.container_id, fourth.pid, fourth.epoch)
    assert f"container {fourth.container_id} leads for" in sandbox.output_of("status", "steady")
    standby_run.until(lambda: takeovers(sandbox) >= 2, "the event of the last leader")

    led = sandbox.log_text("tmanager-*.log").count("leading, epoch")
    sandbox.output_of("kill", "steady")
    assert standby_run.run.wait() == 1
    assert sandbox.log_text("tmanager-*.log").count("leading, epoch") == led, (
        "no standby takes over from a leader that ends in order"
    )


@pytest.mark.guarantee
def test_a_deposed_leader_that_continues_changes_nothing(sandbox: Sandbox, state: LocalFsStateManager) -> None:
    """On one machine, a stopped leader keeps the lead until its node is removed.

    The deposed leader notices this at once. A task that dies without a leader restarts with the plan of its
    stream manager.

    Guarantee: a deposed leader changes nothing.
    """
    standby_run = StandbyRun(sandbox, state, standbys=1)
    first = standby_run.present()
    for manager in standby_run.managers():
        manager.suspend()
    before = {each.pid for each in standby_run.run.processes("instance")}
    standby_run.run.the("instance", "/pass-2").kill()
    standby_run.flows_until(
        lambda: len({each.pid for each in standby_run.run.processes("instance")} - before) == 1,
        "the killed task is back",
    )
    standby_run.flows("through the task that came back")
    standby_run.until(lambda: standby_run.leader() == first, "no standby takes over from a stopped leader")

    state.delete(NodeKind.TMANAGER_LOCATION, "steady")
    deposed = psutil.Process(first.pid)
    for manager in standby_run.managers():
        if manager.pid != first.pid:
            manager.resume()
    second, _ = standby_run.successor(first, "the removal of its node")
    sandbox.output_of("deactivate", "steady")
    plan = state.get(NodeKind.PHYSICAL_PLAN, "steady")
    deposed.resume()
    standby_run.until(lambda: has_ended(deposed), "the deposed leader ends")
    assert state.get(NodeKind.PHYSICAL_PLAN, "steady") == plan
    assert standby_run.leader() == second
    standby_run.until(lambda: len(standby_run.managers()) == 2, "the deposed leader is a standby")
    counting = {"stmgr-1", "executor-1", "metricsmgr-1"}
    standby_run.until(
        lambda: counting <= standby_run.metrics()["deposed-messages"].keys(), "all report refused messages"
    )
    metrics = standby_run.metrics()
    taken_over = {name: count for name, count in metrics["takeovers"].items() if count}  # the first leader has 0
    assert taken_over == {f"tmanager-{second.container_id}": 1}
    sandbox.output_of("activate", "steady")
    standby_run.flows("after the pause")
    standby_run.finish()


@pytest.mark.starts_nothing
def test_more_standbys_than_containers_are_refused_before_anything_starts(sandbox: Sandbox) -> None:
    """The error has key, value, limit and remedy, and exit code 2."""
    run = sandbox.run("steady.py", "--set", "topology.tmanager.standbys=3")
    assert run.process.returncode == 2
    assert "topology.tmanager.standbys: 3 standby topology managers need as many containers" in run.stderr
    assert "set it to 2 at most, or use more containers" in run.stderr
