"""Runs whose state is in a real ZooKeeper, which goes and comes back."""

from __future__ import annotations

import json
import secrets
from typing import TYPE_CHECKING, Any

from heron.spi.statemgr import NodeKind
from heron.testing.pytest_plugin import wait_until
from heron.testing.servers.zookeeper import ZooKeeperEnsemble, ZooKeeperServer
from heron_statemgr_zookeeper.state_manager import ZookeeperStateManager

if TYPE_CHECKING:
    from conftest import HeronRun, Sandbox

_PROFILE = """\
extends: local
statemgr: {{driver: zookeeper, hosts: "{hosts}", root: {root}, username: heron, password: "{password}"}}
"""


def profile(sandbox: Sandbox, *hosts: str) -> ZookeeperStateManager:
    """Writes the profile ``zk`` and opens what it names."""
    options = {"hosts": ",".join(hosts), "root": f"/heron-{secrets.token_hex(8)}", "password": "open sesame"}
    folder = sandbox.home / ".heron" / "profiles"
    folder.mkdir(parents=True)
    (folder / "zk.yaml").write_text(_PROFILE.format(**options))
    return ZookeeperStateManager.open({**options, "username": "heron"})


def seen(run: HeronRun) -> int:
    """How many tuples have arrived."""
    try:
        return int((run.out / "progress").read_text(encoding="utf-8").split()[1])
    except (OSError, IndexError):
        return 0


def flows(run: HeronRun, what: str) -> None:
    """Waits until more tuples arrive."""
    before = seen(run)
    run.until(lambda: seen(run) > before, f"tuples {what}", 30.0)


def status(sandbox: Sandbox) -> dict[str, Any]:
    """What `heron status` says."""
    document: dict[str, Any] = json.loads(sandbox.say("status", "steady", "--profile", "zk", "--json"))["status"]
    return document


def complete(run: HeronRun) -> None:
    """Ends the stream, at most once: every tuple has arrived if no process on its way was replaced."""
    (run.out / "stop").touch()
    counts = run.finished().components
    assert counts["count"].executed == counts["numbers"].emitted > 0


def test_data_flows_on_while_zookeeper_is_away(sandbox: Sandbox, zookeeper: ZooKeeperServer) -> None:
    """Nothing on the data path asks it; `heron status` says that it is away, and works again when it is back."""
    state = profile(sandbox, "{}:{}".format(*zookeeper.address))
    run = sandbox.start("steady.py", "--profile", "zk")
    flows(run, "at the start")
    up = {each["process"]: each["pid"] for each in status(sandbox)["processes"]}
    zookeeper.kill()
    try:
        flows(run, "after the kill")
        assert "ZooKeeper at 127.0.0.1" in (said := sandbox.say("status", "steady", "--profile", "zk", code=1))
        assert "does not answer" in said
        assert "sesame" not in said
        flows(run, "while it is away")
    finally:
        zookeeper.start()
    wait_until(lambda: state.get(NodeKind.TMANAGER_LOCATION, "steady") is not None, 30, "ZooKeeper answers")
    assert status(sandbox)["state"] == "running"
    assert {each["process"]: each["pid"] for each in status(sandbox)["processes"]} == up, "a process was replaced"
    complete(run)
    assert [kind for kind in NodeKind if state.list(kind)] == []
    assert "sesame" not in sandbox.log_text() + run.spoken
    state.close()


def test_a_killed_topology_manager_takes_its_place_again_at_once(sandbox: Sandbox, zookeeper: ZooKeeperServer) -> None:
    """The session of the killed one lives on for ten seconds more; on its machine nobody waits for that."""
    state = profile(sandbox, "{}:{}".format(*zookeeper.address))
    run = sandbox.start("steady.py", "--profile", "zk")
    flows(run, "at the start")
    before = state.get(NodeKind.TMANAGER_LOCATION, "steady")
    assert before is not None

    def replaced() -> bool:
        present = state.get(NodeKind.TMANAGER_LOCATION, "steady")
        return present is not None and present.version > before.version

    run.the("tmanager").kill()
    wait_until(replaced, 8.0, "the next topology manager leads")
    assert status(sandbox)["state"] == "running"
    (run.out / "stop").touch()
    run.finished()
    state.close()


def test_a_leader_killed_in_mid_submit_is_not_noticed(sandbox: Sandbox, zookeeper_ensemble: ZooKeeperEnsemble) -> None:
    """The topology runs, with everything that was written before and after."""
    zookeeper_ensemble.start()
    leader = zookeeper_ensemble.leader()
    state = profile(sandbox, *zookeeper_ensemble.addresses)
    run = sandbox.start("steady.py", "--profile", "zk")
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
