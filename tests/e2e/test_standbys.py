"""Standby topology managers on one machine with state in files: killed, stopped, deposed and continued (D9)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import psutil
import pytest
from standby_world import World

from heron.spi.statemgr import NodeKind
from heron_statemgr_localfs.state_manager import LocalFsOptions, LocalFsStateManager

if TYPE_CHECKING:
    from conftest import Sandbox


@pytest.fixture
def state(sandbox: Sandbox) -> Iterator[LocalFsStateManager]:
    """The state of all runs of the sandbox."""
    found = LocalFsStateManager(LocalFsOptions(str(sandbox.home / ".heron" / "state")))
    yield found
    found.close()


def test_standbys_take_over_and_data_flows_on(sandbox: Sandbox, state: LocalFsStateManager) -> None:
    """The leader is killed, then all of them, then the leader's container; `heron kill` still ends them."""
    world = World(sandbox, state)
    first = world.present()
    psutil.Process(first.pid).kill()
    second, _ = world.successor(first, "a kill")
    world.flows_until(lambda: len(world.managers()) == 3, "the killed one stands by")

    everybody = world.managers()
    for each in everybody:
        each.kill()
    third, _ = world.successor(second, "a kill of all")
    world.flows_until(lambda: len(world.managers()) == 3, "all are back")

    containers = {each.pid: each.parent() for each in world.managers()}
    executor = containers[third.pid]
    assert executor is not None
    executor.kill()
    fourth, _ = world.successor(third, "a kill of its container")
    world.until(lambda: len(world.managers()) == 3, "its container is back")

    status: dict[str, object] = {}

    def whole() -> bool:
        status.update(world.status())
        standbys = status["standbys"]
        return isinstance(standbys, list) and [each["state"] for each in standbys] == ["running"] * 2

    world.until(whole, "every standby has reported")
    leader = status["leader"]
    assert isinstance(leader, dict)
    assert (leader["container_id"], leader["pid"], leader["epoch"]) == (fourth.container_id, fourth.pid, fourth.epoch)
    assert f"container {fourth.container_id} leads for" in sandbox.say("status", "steady")
    assert sandbox.log_text("events-*.jsonl").count("tmanager-took-over") >= 2

    led = sandbox.log_text("tmanager-*.log").count("leading, epoch")
    sandbox.say("kill", "steady")
    assert world.run.wait() == 1
    assert sandbox.log_text("tmanager-*.log").count("leading, epoch") == led, "nobody took over from who was stopping"


def test_a_deposed_leader_that_continues_changes_nothing(sandbox: Sandbox, state: LocalFsStateManager) -> None:
    """On one machine, a stopped leader keeps the lead until its node is removed.

    The deposed leader notices this at once. A task that dies without a leader restarts with the plan of its
    stream manager.
    """
    world = World(sandbox, state, standbys=1)
    first = world.present()
    for manager in world.managers():
        manager.suspend()
    before = {each.pid for each in world.run.processes("instance")}
    world.run.the("instance", "/pass-2").kill()
    world.flows_until(
        lambda: len({each.pid for each in world.run.processes("instance")} - before) == 1, "the killed task is back"
    )
    world.flows("through the task that came back")
    world.until(lambda: world.leader() == first, "nobody took over from who is only stopped")

    state.delete(NodeKind.TMANAGER_LOCATION, "steady")
    deposed = psutil.Process(first.pid)
    for manager in world.managers():
        if manager.pid != first.pid:
            manager.resume()
    second, _ = world.successor(first, "the removal of its node")
    sandbox.say("deactivate", "steady")
    plan = state.get(NodeKind.PHYSICAL_PLAN, "steady")
    deposed.resume()
    world.until(lambda: not deposed.is_running() or deposed.status() == psutil.STATUS_ZOMBIE, "the deposed one ends")
    assert state.get(NodeKind.PHYSICAL_PLAN, "steady") == plan
    assert world.leader() == second
    world.until(lambda: len(world.managers()) == 2, "it stands by")
    counting = {"stmgr-1", "executor-1", "metricsmgr-1"}
    world.until(lambda: counting <= world.metrics()["deposed-messages"].keys(), "all say how much they refused")
    metrics = world.metrics()
    taken_over = {name: count for name, count in metrics["takeovers"].items() if count}  # the first leader has 0
    assert taken_over == {f"tmanager-{second.container_id}": 1}
    sandbox.say("activate", "steady")
    world.flows("after the pause")
    world.finish()


def test_more_standbys_than_containers_are_refused_before_anything_starts(sandbox: Sandbox) -> None:
    """The error has key, value, limit and remedy, and exit code 2."""
    run = sandbox.run("steady.py", "--set", "topology.tmanager.standbys=3")
    assert run.process.returncode == 2
    assert "topology.tmanager.standbys: 3 standby topology managers need as many containers" in run.stderr
    assert "set it to 2 at most, or use more containers" in run.stderr
