"""Standby topology managers on one machine, whose state is files: killed, stopped, deposed, woken up (D9)."""

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
    """The state that every run of the sandbox is kept in."""
    found = LocalFsStateManager(LocalFsOptions(str(sandbox.home / ".heron" / "state")))
    yield found
    found.close()


def test_leadership_moves_on_and_data_never_stops(sandbox: Sandbox, state: LocalFsStateManager) -> None:
    """The leader is killed, then all at once, then the leader's container; a `heron kill` ends them all the same."""
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


def test_a_deposed_leader_that_wakes_up_changes_nothing(sandbox: Sandbox, state: LocalFsStateManager) -> None:
    """On one machine only whoever removes its node deposes a leader that is merely stopped.

    It finds that out in its first moment. A task that dies while there is nobody to lead works on with the plan that
    its stream manager has.
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
    taken_over = {name: count for name, count in metrics["takeovers"].items() if count}  # the first to lead says 0
    assert taken_over == {f"tmanager-{second.container_id}": 1}
    sandbox.say("activate", "steady")
    world.flows("after the pause")
    world.finish()


def test_more_standbys_than_containers_are_refused_before_anything_starts(sandbox: Sandbox) -> None:
    """With key, value, limit and remedy, and exit code 2."""
    run = sandbox.run("steady.py", "--set", "topology.tmanager.standbys=3")
    assert run.process.returncode == 2
    assert "topology.tmanager.standbys: 3 standby topology managers need as many containers" in run.stderr
    assert "set it to 2 at most, or use more containers" in run.stderr
