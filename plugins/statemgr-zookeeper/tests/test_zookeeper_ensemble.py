"""An ensemble of three servers, of which one can fail at any time."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from heron.driver_kit.large_values import LargeValues
from heron.spi.statemgr import MUST_NOT_EXIST, NodeKind, Versioned
from heron_testing.waiting import wait_until
from heron_testing_servers.zookeeper import ZooKeeperEnsemble, ZooKeeperServer

if TYPE_CHECKING:
    from conftest import Open

_SUBMITTED = (NodeKind.KEYS, NodeKind.TOPOLOGY, NodeKind.PACKING_PLAN, NodeKind.EXECUTION_STATE)
_LARGE = random.Random(3).randbytes(3 * 1024 * 1024)


@pytest.fixture
def ensemble(zookeeper_ensemble: ZooKeeperEnsemble) -> Iterator[ZooKeeperEnsemble]:
    """All three servers run, also after a test that killed one."""
    zookeeper_ensemble.start()
    yield zookeeper_ensemble
    zookeeper_ensemble.start()


def test_a_leader_killed_in_mid_submit_loses_nothing(open_manager: Open, ensemble: ZooKeeperEnsemble) -> None:
    """Each change is made exactly once, the lock stays held, and no call fails."""
    servers = ",".join(ensemble.addresses)
    manager = open_manager(servers, session_timeout_s=20.0, timeout_s=9.0)
    whole = LargeValues(manager, manager.max_value_bytes or 0)
    lock = whole.hold(NodeKind.LOCK, "t", b"submitting")
    leader = ensemble.leader()
    kill = threading.Event()
    versions: dict[NodeKind, int] = {}
    failures: list[Exception] = []

    def submit() -> None:
        try:
            for number in range(1, 41):
                for kind in _SUBMITTED:
                    value = _LARGE if kind is NodeKind.PACKING_PLAN and number % 8 == 0 else b"%d" % number
                    versions[kind] = whole.set(kind, "t", value, expected=versions.get(kind, MUST_NOT_EXIST))
                if number == 12:
                    kill.set()
        except Exception as error:  # for the test's own thread
            failures.append(error)
        finally:
            kill.set()

    thread = threading.Thread(target=submit)
    thread.start()
    assert kill.wait(60)
    leader.kill()
    thread.join(60)
    assert not thread.is_alive()
    assert not failures
    assert set(versions.values()) == {40}, "a change was made twice, or not at all"
    assert not lock.lost()
    another = LargeValues(open_manager(servers), manager.max_value_bytes or 0)
    for kind in _SUBMITTED:
        assert another.get(kind, "t") == Versioned(_LARGE if kind is NodeKind.PACKING_PLAN else b"40", 40)
    assert len(another.list(NodeKind.PART)) == 4, "parts of former values"


def test_a_read_through_one_server_sees_a_write_through_another(
    open_manager: Open, ensemble: ZooKeeperEnsemble
) -> None:
    """A command and the process that it starts may use different servers, and one server may be behind."""
    managers = [open_manager(address) for address in ensemble.addresses]
    for number in range(1, 61):
        version = managers[number % 3].set(NodeKind.TOPOLOGY, "t", b"%d" % number)
        assert managers[(number + 1) % 3].get(NodeKind.TOPOLOGY, "t") == Versioned(b"%d" % number, version)
        assert managers[(number + 2) % 3].list(NodeKind.TOPOLOGY) == ("t",)


def test_a_watch_misses_nothing_while_every_server_is_restarted(
    open_manager: Open, ensemble: ZooKeeperEnsemble
) -> None:
    """A change between two connections, as in a rolling restart, is reported after the second connection."""
    servers = ",".join(ensemble.addresses)
    watcher, writer = open_manager(servers, session_timeout_s=20.0), open_manager(servers, timeout_s=9.0)
    seen: list[Versioned | None] = []
    watcher.watch(NodeKind.PHYSICAL_PLAN, "t", seen.append)
    assert seen == [None]
    for server in ensemble.servers:
        _restarted(server)
        wait_until(lambda: all(each.mode() for each in ensemble.servers), 60, "the ensemble serves")
        version = writer.set(NodeKind.PHYSICAL_PLAN, "t", b"x")
        wait_until(lambda: seen[-1] == Versioned(b"x", version), 30, "the last change")  # noqa: B023  # called in here
    versions = [present.version for present in seen if present is not None]
    assert None not in seen[1:]
    assert versions == sorted(set(versions))


def _restarted(server: ZooKeeperServer) -> None:
    server.kill()
    server.start()
