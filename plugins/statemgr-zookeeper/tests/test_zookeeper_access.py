"""Access rights, quotas, options, and changes by hand."""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import NoAuthError
from kazoo.security import make_digest_acl

from heron.errors import ConfigError, StateConflictError, StateError, StateUnavailableError
from heron.spi.statemgr import NodeKind, Versioned
from heron_statemgr_zookeeper.state_manager import ZookeeperStateManager
from heron_testing.ports import free_port
from heron_testing_servers.zookeeper import ZooKeeperServer

if TYPE_CHECKING:
    from conftest import Open

_KIND = NodeKind.PACKING_PLAN
_USER = {"username": "heron", "password": "open sesame"}


@pytest.fixture
def server(zookeeper: ZooKeeperServer) -> str:
    host, port = zookeeper.address
    return f"{host}:{port}"


@pytest.fixture
def by_hand(server: str) -> Iterator[KazooClient]:
    """A client without the password."""
    client = KazooClient(server)
    client.start()
    yield client
    client.stop()
    client.close()


def test_only_its_user_has_access_to_a_znode(open_manager: Open, server: str, by_hand: KazooClient) -> None:
    """The znodes contain the keys of running topologies. Their names and versions are private too."""
    manager = open_manager(server, **_USER)
    manager.set(NodeKind.KEYS, "t", b"secret")
    manager.set(NodeKind.PART, "p", b"secret")
    manager.hold(NodeKind.LOCK, "t", b"secret")
    paths = [manager.root]
    owner = KazooClient(server, auth_data=[("digest", ":".join(_USER.values()))])
    owner.start()
    for path in paths:
        paths += [f"{path}/{child}" for child in owner.get_children(path)]
        assert owner.get_acls(path)[0] == [make_digest_acl(*_USER.values(), all=True)], path
        for attempt in (by_hand.get, by_hand.get_children, lambda path: by_hand.set(path, b"")):
            with pytest.raises(NoAuthError):
                attempt(path)
    owner.stop()
    owner.close()
    assert len(paths) == 12, paths


@pytest.mark.parametrize(
    "credentials", [{}, {"username": "heron", "password": "open barley"}], ids=["no user", "wrong password"]
)
def test_the_error_for_a_wrong_password_has_the_remedy(
    open_manager: Open, server: str, credentials: dict[str, str]
) -> None:
    """Nothing changes, the store does not look empty, and no message contains the password."""
    manager = open_manager(server, **_USER)
    manager.set(_KIND, "t", b"one")
    stranger = open_manager(server, **credentials)
    for attempt in (
        lambda: stranger.get(_KIND, "t"),
        lambda: stranger.set(_KIND, "t", b"two"),
        lambda: stranger.set(_KIND, "u", b"two"),
        lambda: stranger.delete(_KIND, "t"),
        lambda: stranger.list(_KIND),
        lambda: stranger.watch(_KIND, "t", lambda _present: None),
        lambda: stranger.hold(NodeKind.LOCK, "t", b"two"),
        lambda: stranger.check(5.0),
    ):
        with pytest.raises(StateError, match=f"{server} does not let .*; check 'username' and 'password'") as caught:
            attempt()
        assert not isinstance(caught.value, StateUnavailableError)
        assert "open" not in str(caught.value)
    assert manager.get(_KIND, "t") == Versioned(b"one", 1)
    assert manager.list(_KIND) == ("t",)


def test_a_root_below_the_znode_of_another_user_is_reported(
    open_manager: Open, server: str, by_hand: KazooClient
) -> None:
    """The administrator must create the root or give the right. Until then a write raises an error."""
    place = f"/private-{secrets.token_hex(8)}"
    by_hand.create(place, acl=[make_digest_acl("admin", "admin", all=True)])
    manager = open_manager(server, root=f"{place}/heron", **_USER)
    with pytest.raises(StateError, match=f"does not let user 'heron' .*{place}.*give that user rights there"):
        manager.set(_KIND, "t", b"one")


def test_a_full_quota_changes_nothing(open_manager: Open, server: str, by_hand: KazooClient) -> None:
    """An administrator can limit the root in bytes. The previous value stays, and the message names the remedy."""
    manager = open_manager(server)
    manager.set(_KIND, "t", b"one")
    quota = f"/zookeeper/quota{manager.root}"
    by_hand.create(
        f"{quota}/zookeeper_limits", b"count=-1,bytes=-1=;byteHardLimit=4096;countHardLimit=-1", makepath=True
    )
    by_hand.create(f"{quota}/zookeeper_stats", b"count=0,bytes=0")
    for attempt in (
        lambda: manager.set(_KIND, "t", b"x" * 8192, expected=1),
        lambda: manager.set(_KIND, "new", b"x" * 8192),
        lambda: manager.hold(NodeKind.LOCK, "t", b"x" * 8192),
    ):
        with pytest.raises(StateError, match=f"cannot write {manager.root}/.*its quota is used up; raise it") as caught:
            attempt()
        assert not isinstance(caught.value, StateUnavailableError)
    assert manager.get(_KIND, "t") == Versioned(b"one", 1)
    assert manager.list(_KIND) == ("t",)
    assert manager.get(NodeKind.LOCK, "t") is None
    by_hand.delete(quota, recursive=True)
    assert manager.set(_KIND, "t", b"x" * 8192, expected=1) == 2


def test_a_znode_changed_by_hand_is_named_and_a_write_repairs_it(
    open_manager: Open, server: str, by_hand: KazooClient
) -> None:
    """A garbled value is never returned. The version continues to grow, so that readers accept the new value."""
    manager = open_manager(server)
    manager.set(_KIND, "t", b"one")
    path = f"{manager.root}/packingplans/t"
    version = 1
    for change in (b"", b"{}", by_hand.get(path)[0].replace(b"one", b"two"), b"heron-node 1 version=9\n"):
        version = manager.set(_KIND, "t", b"one")
        by_hand.set(path, change)
        with pytest.raises(StateError, match=f"{path}: the znode was changed by hand.*remove it"):
            manager.get(_KIND, "t")
        with pytest.raises(StateConflictError):
            manager.set(_KIND, "t", b"two", expected=version + 1)
        assert manager.set(_KIND, "t", b"two") == version + 1
    assert manager.get(_KIND, "t") == Versioned(b"two", version + 1)


def test_counters_and_folders_removed_by_hand_are_created_again(
    open_manager: Open, server: str, by_hand: KazooClient
) -> None:
    """A removal of the counter does not lower the version of an existing node."""
    manager = open_manager(server)
    for value in (b"one", b"two"):
        manager.set(_KIND, "t", value)
    by_hand.delete(f"{manager.root}/versions", recursive=True)
    assert manager.set(_KIND, "t", b"three") == 3
    by_hand.delete(f"{manager.root}/packingplans", recursive=True)
    assert manager.get(_KIND, "t") is None
    assert manager.list(_KIND) == ()
    assert manager.set(_KIND, "t", b"four") == 4


def test_versions_grow_across_removal(open_manager: Open, server: str) -> None:
    """A command must not take a plan that was removed and written again for the plan that it read."""
    manager = open_manager(server)
    first = manager.set(_KIND, "t", b"one")
    manager.delete(_KIND, "t")
    assert manager.set(_KIND, "t", b"two") > first
    with pytest.raises(StateConflictError, match=r"packingplans/t .* is at version 2, but version 1 was expected"):
        manager.set(_KIND, "t", b"three", expected=first)


def test_a_held_node_stays_held_when_its_value_changes(open_manager: Open, server: str) -> None:
    """A topology manager may write its location again and still lead."""
    manager = open_manager(server)
    hold = manager.hold(NodeKind.TMANAGER_LOCATION, "t", b"one")
    manager.set(NodeKind.TMANAGER_LOCATION, "t", b"two")
    other = open_manager(server)
    with pytest.raises(StateConflictError, match="is held by another"):
        other.hold(NodeKind.TMANAGER_LOCATION, "t", b"three")
    assert not hold.lost()
    hold.release()
    assert other.get(NodeKind.TMANAGER_LOCATION, "t") is None


def test_the_error_for_a_large_value_names_the_limit(open_manager: Open, server: str) -> None:
    """ZooKeeper would break the connection at each attempt. A value of exactly the limit fits into a request."""
    manager = open_manager(server, **_USER)
    limit = ZookeeperStateManager.max_value_bytes
    assert limit is not None
    assert manager.set(_KIND, "t" * 200, b"x" * limit) == 1
    with pytest.raises(StateError, match=f"a value of {limit + 1} bytes is above the limit of {limit} bytes"):
        manager.set(_KIND, "t", b"x" * (limit + 1))


def test_the_error_for_absent_servers_names_them(open_manager: Open) -> None:
    """The operator sees which servers are down."""
    servers = f"127.0.0.1:{free_port()}, 127.0.0.1:{free_port()}"
    with pytest.raises(StateUnavailableError, match=f"ZooKeeper at {servers} does not answer"):
        open_manager(servers, timeout_s=0.5).get(_KIND, "t")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hosts": ""}, "'hosts' has ''"),
        ({"hosts": "zk1:2181,,zk2"}, "'hosts' has ''"),
        ({"hosts": "http://zk1"}, "'hosts' has 'http://zk1'"),
        ({"hosts": "zk1:2181/chroot"}, "'hosts' has"),
        ({"root": "heron"}, "'root' is 'heron'"),
        ({"root": "/"}, "'root' is '/'"),
        ({"root": "/heron/"}, "'root' is '/heron/'"),
        ({"root": "/a/../b"}, "'root' is"),
        ({"root": "/zookeeper/quota"}, "'root' is"),
        ({"username": "heron"}, "belong together"),
        ({"password": "open sesame"}, "belong together"),
        ({"username": "a:b", "password": "open sesame"}, "contains no colon"),
        ({"session_timeout_s": 0.0}, "session_timeout_s"),
        ({"timeout_s": 60.0}, "timeout_s"),
    ],
)
def test_invalid_options_are_refused_before_any_request(options: dict[str, object], message: str) -> None:
    """`heron profiles check` finds the mistake before the first run."""
    with pytest.raises(ConfigError, match=message) as caught:
        ZookeeperStateManager.open(options)
    assert "sesame" not in str(caught.value)
