"""Standby topology managers on a ZooKeeper of three servers, where a lease is a session.

A dead leader on the same machine is seen at once; as if it had been on another one, the tests remove the files by which
it is seen, and the session has to time out.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

import psutil
import pytest
from standby_world import Led, World

from heron.spi.statemgr import NodeKind
from heron_statemgr_zookeeper.state_manager import ZookeeperStateManager
from servers.zookeeper import ZooKeeperEnsemble

if TYPE_CHECKING:
    from conftest import Sandbox

SESSION_S = 2.0
SLACK_S = 8.0  # on a machine that is busy with others; what it takes otherwise stands in docs/operations.md

_PROFILE = """\
extends: local
statemgr: {{driver: zookeeper, hosts: "{hosts}", root: {root}, session_timeout_s: {session_timeout_s}}}
"""


@pytest.fixture
def world(sandbox: Sandbox, zookeeper_ensemble: ZooKeeperEnsemble) -> Iterator[World]:
    """A run with two standbys."""
    zookeeper_ensemble.start()
    options: dict[str, object] = {
        "hosts": ",".join(zookeeper_ensemble.addresses),
        "root": f"/heron-{secrets.token_hex(8)}",
        "session_timeout_s": SESSION_S,
    }
    folder = sandbox.home / ".heron" / "profiles"
    folder.mkdir(parents=True)
    (folder / "zk.yaml").write_text(_PROFILE.format(**options))
    state = ZookeeperStateManager.open({**options, "lock_dir": str(sandbox.root / "locks")})
    yield World(sandbox, state, "--profile", "zk")
    zookeeper_ensemble.start()
    state.close()


def is_elsewhere(world: World) -> None:
    """From now on nobody sees whether who leads is alive."""
    for path in (world.sandbox.home / ".heron" / "zookeeper").iterdir():
        path.unlink()


def killed(world: World) -> tuple[Led, Led, float]:
    """Kills the leader: who that was, who follows, and how long that took."""
    former = world.present()
    psutil.Process(former.pid).kill()
    return former, *world.successor(former, "a kill")


def test_a_killed_leader_is_followed_after_its_session(world: World) -> None:
    """At once on its own machine; where nobody sees that it is dead, when its session has timed out."""
    former, leader, _ = killed(world)
    assert leader.epoch > former.epoch
    world.flows_until(lambda: len(world.managers()) == 3, "the killed one stands by")
    is_elsewhere(world)
    _, leader, took_s = killed(world)
    assert took_s < SESSION_S + SLACK_S
    assert (world.status()["leader"] or {})["pid"] == leader.pid
    world.finish()


def test_a_leader_that_slept_through_its_session_is_refused_when_it_wakes_up(world: World) -> None:
    """The issue of every lease: it believes that it leads, has mail, and answers it. All it says is refused, and
    counted; it writes nothing; it ends, and stands by.
    """
    former = world.present()
    deposed = psutil.Process(former.pid)
    deposed.suspend()
    name = "/pass-3" if former.container_id != 1 else "/pass-2"
    before = {each.pid for each in world.run.processes("instance")}
    world.run.the("instance", name).kill()  # its start will be in the mail of the one that sleeps
    world.flows_until(
        lambda: {each.pid for each in world.run.processes("instance")} - before, "the killed task is back"
    )
    leader, _ = world.successor(former, "a sleep")
    world.sandbox.say("deactivate", "steady", "--profile", "zk")
    plan = world.state.get(NodeKind.PHYSICAL_PLAN, "steady")
    deposed.resume()
    world.until(lambda: not deposed.is_running() or deposed.status() == psutil.STATUS_ZOMBIE, "the deposed one ends")
    assert world.state.get(NodeKind.PHYSICAL_PLAN, "steady") == plan
    assert world.leader() == leader
    world.until(lambda: sum(world.metrics()["deposed-messages"].values()) >= 1, "what it said was refused and counted")
    world.until(lambda: len(world.managers()) == 3, "it stands by")
    assert world.status()["state"] == "paused"
    world.sandbox.say("activate", "steady", "--profile", "zk")
    world.flows("after the pause")
    world.finish()


def test_zookeepers_leader_and_ours_die_at_once(world: World, zookeeper_ensemble: ZooKeeperEnsemble) -> None:
    """The ensemble elects one, then our standbys do; data flows on through both."""
    is_elsewhere(world)
    server = zookeeper_ensemble.leader()
    former = world.present()
    server.kill()
    psutil.Process(former.pid).kill()
    leader, _ = world.successor(former, "both kills")
    assert leader.epoch > former.epoch
    world.flows_until(lambda: len(world.managers()) == 3, "the killed one stands by")
    world.finish()
