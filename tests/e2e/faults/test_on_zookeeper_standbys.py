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

from heron.spi.statemgr import NodeKind
from heron_statemgr_zookeeper.state_manager import ZookeeperStateManager
from heron_testing_servers.zookeeper import ZooKeeperEnsemble
from standby_run import Leader, StandbyRun, has_ended

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

SESSION_S = 2.0
SLACK_S = 8.0  # on a busy machine; docs/operations.md has the usual times

_PROFILE = """\
extends: local
statemgr: {{driver: zookeeper, hosts: "{hosts}", root: {root}, session_timeout_s: {session_timeout_s}}}
"""


@pytest.fixture
def standby_run(sandbox: Sandbox, zookeeper_ensemble: ZooKeeperEnsemble) -> Iterator[StandbyRun]:
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
    yield StandbyRun(sandbox, state, "--profile", "zk")
    zookeeper_ensemble.start()
    state.close()


def is_elsewhere(standby_run: StandbyRun) -> None:
    """Remove the file that shows whether the leader is alive."""
    for path in (standby_run.sandbox.home / ".heron" / "zookeeper").iterdir():
        path.unlink()


def killed(standby_run: StandbyRun) -> tuple[Leader, Leader, float]:
    """Kill the leader; return it, its successor, and the seconds."""
    former = standby_run.present()
    psutil.Process(former.pid).kill()
    return former, *standby_run.successor(former, "a kill")


def test_a_standby_leads_after_the_session_of_a_killed_leader(standby_run: StandbyRun) -> None:
    """At once on the same machine; elsewhere after the session has timed out."""
    former, leader, _ = killed(standby_run)
    assert leader.epoch > former.epoch
    standby_run.flows_until(lambda: len(standby_run.managers()) == 3, "the killed topology manager is a standby")
    is_elsewhere(standby_run)
    _, leader, took_s = killed(standby_run)
    assert took_s < SESSION_S + SLACK_S
    assert (standby_run.status()["leader"] or {})["pid"] == leader.pid
    standby_run.finish()


def test_a_leader_stopped_beyond_its_session_is_refused_when_it_continues(standby_run: StandbyRun) -> None:
    """It still believes that it leads, and answers its mail. Its messages are refused and counted, its writes
    fail, and it restarts as a standby.
    """
    former = standby_run.present()
    deposed = psutil.Process(former.pid)
    deposed.suspend()
    name = "/pass-3" if former.container_id != 1 else "/pass-2"
    before = {each.pid for each in standby_run.run.processes("instance")}
    standby_run.run.the("instance", name).kill()  # the mail of the stopped process will contain its start
    standby_run.flows_until(
        lambda: {each.pid for each in standby_run.run.processes("instance")} - before, "the killed task is back"
    )
    leader, _ = standby_run.successor(former, "a sleep")
    standby_run.sandbox.output_of("deactivate", "steady", "--profile", "zk")
    plan = standby_run.state.get(NodeKind.PHYSICAL_PLAN, "steady")
    deposed.resume()
    standby_run.until(lambda: has_ended(deposed), "the deposed leader ends")
    assert standby_run.state.get(NodeKind.PHYSICAL_PLAN, "steady") == plan
    assert standby_run.leader() == leader
    standby_run.until(
        lambda: sum(standby_run.metrics()["deposed-messages"].values()) >= 1, "its messages are refused and counted"
    )
    standby_run.until(lambda: len(standby_run.managers()) == 3, "the deposed leader is a standby")
    assert standby_run.status()["state"] == "paused"
    standby_run.sandbox.output_of("activate", "steady", "--profile", "zk")
    standby_run.flows("after the pause")
    standby_run.finish()


def test_zookeepers_leader_and_the_topologys_leader_die_at_once(
    standby_run: StandbyRun, zookeeper_ensemble: ZooKeeperEnsemble
) -> None:
    """The ensemble elects a leader, then the standbys do; data flows on meanwhile."""
    is_elsewhere(standby_run)
    server = zookeeper_ensemble.leader()
    former = standby_run.present()
    server.kill()
    psutil.Process(former.pid).kill()
    leader, _ = standby_run.successor(former, "both kills")
    assert leader.epoch > former.epoch
    standby_run.flows_until(lambda: len(standby_run.managers()) == 3, "the killed topology manager is a standby")
    standby_run.finish()
