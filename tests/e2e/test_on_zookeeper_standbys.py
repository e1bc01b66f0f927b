"""Standby topology managers on a ZooKeeper of three servers, where a lease is a session.

Standbys on the same machine see a dead leader at once, through a file. To imitate another machine, the tests remove the
file, and the session must time out.
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
SLACK_S = 8.0  # on a busy machine; docs/operations.md has the usual times

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
    """Remove the file that shows whether the leader is alive."""
    for path in (world.sandbox.home / ".heron" / "zookeeper").iterdir():
        path.unlink()


def killed(world: World) -> tuple[Led, Led, float]:
    """Kill the leader; return it, its successor, and the seconds."""
    former = world.present()
    psutil.Process(former.pid).kill()
    return former, *world.successor(former, "a kill")


def test_a_standby_leads_after_the_session_of_a_killed_leader(world: World) -> None:
    """At once on the same machine; elsewhere after the session has timed out."""
    former, leader, _ = killed(world)
    assert leader.epoch > former.epoch
    world.flows_until(lambda: len(world.managers()) == 3, "the killed one stands by")
    is_elsewhere(world)
    _, leader, took_s = killed(world)
    assert took_s < SESSION_S + SLACK_S
    assert (world.status()["leader"] or {})["pid"] == leader.pid
    world.finish()


def test_a_leader_stopped_beyond_its_session_is_refused_when_it_continues(world: World) -> None:
    """It still believes that it leads, and answers its mail. Its messages are refused and counted, its writes
    fail, and it restarts as a standby.
    """
    former = world.present()
    deposed = psutil.Process(former.pid)
    deposed.suspend()
    name = "/pass-3" if former.container_id != 1 else "/pass-2"
    before = {each.pid for each in world.run.processes("instance")}
    world.run.the("instance", name).kill()  # the mail of the stopped process will contain its start
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


def test_zookeepers_leader_and_the_topologys_leader_die_at_once(
    world: World, zookeeper_ensemble: ZooKeeperEnsemble
) -> None:
    """The ensemble elects a leader, then the standbys do; data flows on meanwhile."""
    is_elsewhere(world)
    server = zookeeper_ensemble.leader()
    former = world.present()
    server.kill()
    psutil.Process(former.pid).kill()
    leader, _ = world.successor(former, "both kills")
    assert leader.epoch > former.epoch
    world.flows_until(lambda: len(world.managers()) == 3, "the killed one stands by")
    world.finish()
