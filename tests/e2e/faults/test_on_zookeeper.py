"""Runs with state in a real ZooKeeper that stops and returns."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

from counted_words import CountedWords
from flowing import complete, flows
from heron.spi.statemgr import NodeKind
from heron_statemgr_zookeeper.state_manager import ZookeeperStateManager
from heron_testing.waiting import wait_until
from heron_testing_servers.zookeeper import ZooKeeperEnsemble, ZooKeeperServer

if TYPE_CHECKING:
    from heron_testing.sandbox import Sandbox

_HERE = ("--profile", "zk")
_PROFILE = """\
extends: local
statemgr: {{driver: zookeeper, hosts: "{hosts}", root: {root}, username: heron, password: "{password}"}}
"""


def profile(sandbox: Sandbox, *hosts: str) -> ZookeeperStateManager:
    """Write the profile ``zk`` and open its state manager."""
    options = {"hosts": ",".join(hosts), "root": f"/heron-{secrets.token_hex(8)}", "password": "open sesame"}
    sandbox.write_profile("zk", _PROFILE.format(**options))
    return ZookeeperStateManager.open({**options, "username": "heron"})


def test_words_are_counted_exactly_while_zookeeper_is_away(sandbox: Sandbox, zookeeper: ZooKeeperServer) -> None:
    """ZooKeeper is not on the path of tuples. `heron status` reports the outage and works again afterwards."""
    state = profile(sandbox, "{}:{}".format(*zookeeper.address))
    words = CountedWords(sandbox, sandbox.start("steady_words.py", *_HERE), _HERE)
    words.flows()
    before = words.processes()
    zookeeper.kill()
    try:
        words.flows()
        assert "ZooKeeper at 127.0.0.1" in (output := words.status(code=1))
        assert "does not answer" in output
        assert "sesame" not in output
        words.flows()
    finally:
        zookeeper.start()
    wait_until(lambda: state.get(NodeKind.TMANAGER_LOCATION, "steady_words") is not None, 30, "ZooKeeper answers")
    assert words.processes() == before, "a process was replaced"
    words.ends_exactly()
    assert [kind for kind in NodeKind if state.list(kind)] == []
    assert "sesame" not in sandbox.log_text() + words.run.all_output
    state.close()


def test_a_killed_topology_manager_is_replaced_at_once(sandbox: Sandbox, zookeeper: ZooKeeperServer) -> None:
    """The session of the killed process lives for ten more seconds; on the same machine no process waits for that."""
    state = profile(sandbox, "{}:{}".format(*zookeeper.address))
    run = sandbox.start("steady.py", *_HERE)
    flows(run, "at the start")
    before = state.get(NodeKind.TMANAGER_LOCATION, "steady")
    assert before is not None

    def replaced() -> bool:
        present = state.get(NodeKind.TMANAGER_LOCATION, "steady")
        return present is not None and present.version > before.version

    run.the("tmanager").kill()
    wait_until(replaced, 8.0, "the next topology manager leads")
    assert sandbox.status_document("steady", *_HERE)["status"]["state"] == "running"
    (run.out / "stop").touch()
    run.finished()
    state.close()


def test_a_leader_killed_in_mid_submit_is_not_noticed(sandbox: Sandbox, zookeeper_ensemble: ZooKeeperEnsemble) -> None:
    """The topology runs, with everything that was written before and after."""
    zookeeper_ensemble.start()
    leader = zookeeper_ensemble.leader()
    state = profile(sandbox, *zookeeper_ensemble.addresses)
    run = sandbox.start("steady.py", *_HERE)
    run.until(lambda: state.list(NodeKind.TOPOLOGY), "the first node of a submit")
    leader.kill()
    try:
        flows(run, "after the kill")
        for kind in (NodeKind.TOPOLOGY, NodeKind.PACKING_PLAN, NodeKind.PHYSICAL_PLAN, NodeKind.EXECUTION_STATE):
            assert state.list(kind) == ("steady",), kind
        complete(run)
        assert [kind for kind in NodeKind if state.list(kind)] == []
    finally:
        zookeeper_ensemble.start()
        state.close()
