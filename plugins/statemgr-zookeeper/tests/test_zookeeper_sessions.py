"""Holds and watches when a connection breaks, a session ends, or a process or the server is killed."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from heron.clock import monotonic_s
from heron.errors import StateConflictError, StateError, StateUnavailableError
from heron.spi.statemgr import Hold, NodeKind, StateManager, Versioned
from heron_testing.contracts.driver import in_time
from heron_testing.contracts.parts.second_process import second_process
from heron_testing.faults import Fault, relay_faults
from heron_testing.relay import Relay
from heron_testing.waiting import wait_until
from heron_testing_servers.faketime import shifted_clock
from heron_testing_servers.zookeeper import ZooKeeperServer

if TYPE_CHECKING:
    from conftest import Open

_PLACE = NodeKind.TMANAGER_LOCATION
_SOON_S = 5.0  # for events that need no session timeout; where that matters, the session timeout is longer
_LONG_S = 300.0  # no session ends while a server starts again on a busy machine
_ANSWER_S = 4.0  # enough for a server on a busy machine; a call to a silent server waits so long


@pytest.fixture
def relay(zookeeper: ZooKeeperServer) -> Iterator[Relay]:
    """A relay between a driver and the server."""
    relay = Relay(zookeeper.address)
    yield relay
    relay.close()


def _format_address(address: tuple[str, int]) -> str:
    return f"{address[0]}:{address[1]}"


def _fault(fault: Fault | None) -> AbstractContextManager[None]:
    assert fault is not None
    return fault()


def _held(manager: StateManager, topology: str) -> Hold | None:
    try:
        return manager.hold(NodeKind.LOCK, topology, b"again")
    except StateUnavailableError:
        return None


def _answers(manager: StateManager) -> bool:
    try:
        manager.list(NodeKind.TOPOLOGY)
    except StateUnavailableError:
        return False
    return True


def test_a_suspended_session_keeps_its_holds(open_manager: Open, relay: Relay) -> None:
    """A leader stays the leader when its connection breaks for a moment: no other process can hold its node."""
    manager = open_manager(_format_address(relay.address), session_timeout_s=30.0)
    hold = manager.hold(_PLACE, "t", b"here")
    for _ in range(3):
        accepted = relay.accepted
        relay.cut()
        wait_until(lambda: relay.accepted > accepted, _SOON_S, "another connection")  # noqa: B023  # called in here
        assert manager.get(_PLACE, "t") == Versioned(b"here", hold.epoch)
    assert not hold.lost()


def test_a_lost_session_loses_its_holds_for_good(open_manager: Open, relay: Relay, zookeeper: ZooKeeperServer) -> None:
    """Another process may hold the node meanwhile. If the first holder continued, there would be two leaders."""
    manager = open_manager(_format_address(relay.address))
    other = open_manager(_format_address(zookeeper.address))
    hold = manager.hold(_PLACE, "t", b"here")
    with _fault(relay_faults(relay).away):
        wait_until(lambda: other.get(_PLACE, "t") is None, 30, "the session is over")
        assert not hold.lost(), "the holder cannot know it yet"
        epoch = other.hold(_PLACE, "t", b"there").epoch
    wait_until(hold.lost, 30, "the hold is lost")
    wait_until(lambda: _answers(manager), 30, "there is a new session")
    assert hold.lost()
    assert epoch > hold.epoch
    hold.release()
    assert other.get(_PLACE, "t") == Versioned(b"there", epoch)


def _holder(open_manager: Open, server: str, lock_dir: Path) -> subprocess.Popen[str]:
    """Start a process that holds the location, with its session lock in `lock_dir`."""
    manager = open_manager(server)
    options = {"hosts": server, "root": manager.root, "session_timeout_s": 60.0, "lock_dir": str(lock_dir)}
    words = second_process("statemgr", type(manager), options, "hold", _PLACE.value, "t")
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    assert process.stdout.readline().startswith("epoch")
    return process


def _kill(process: subprocess.Popen[str]) -> None:
    process.kill()
    process.wait()
    assert process.stdout is not None
    process.stdout.close()


def test_the_node_of_a_killed_holder_can_be_held_at_once_on_its_machine(
    open_manager: Open, zookeeper: ZooKeeperServer, tmp_path: Path
) -> None:
    """A restarted topology manager must not wait for the timeout of its former session."""
    server = _format_address(zookeeper.address)
    holder = _holder(open_manager, server, tmp_path / "locks")
    manager = open_manager(server)
    with pytest.raises(StateConflictError, match="is held by another"):
        manager.hold(_PLACE, "t", b"mine")  # the holder lives
    seen: queue.Queue[Versioned | None] = queue.Queue()
    manager.watch(_PLACE, "t", seen.put)
    former = seen.get_nowait()
    _kill(holder)
    elsewhere = open_manager(server, lock_dir=str(tmp_path / "of another machine"))
    with pytest.raises(StateConflictError, match="is held by another"):
        elsewhere.hold(_PLACE, "t", b"theirs")
    hold = manager.hold(_PLACE, "t", b"mine")
    assert former is not None
    assert hold.epoch > former.version
    assert seen.get(timeout=_SOON_S) == Versioned(b"mine", hold.epoch)
    assert not hold.lost()


@pytest.mark.parametrize("by", ["+1h", "-1h"])
def test_clocks_that_differ_by_an_hour_do_not_matter(open_manager: Open, zookeeper: ZooKeeperServer, by: str) -> None:
    """The server measures the timeout from the last message of a session. No component uses the time of day."""
    place = _format_address(zookeeper.address)
    manager = open_manager(place)
    options = {"hosts": place, "root": manager.root, "session_timeout_s": 2.0, "timeout_s": 5.0}
    code = (
        "import json, sys; from heron.spi.statemgr import NodeKind\n"
        "from heron_statemgr_zookeeper.state_manager import ZookeeperStateManager\n"
        "hold = ZookeeperStateManager.open(json.loads(sys.argv[1])).hold(NodeKind.TMANAGER_LOCATION, 't', b'there')\n"
        "print(hold.epoch, flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", code, json.dumps(options)]
    environment = {**os.environ, **shifted_clock(by)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True) as holder:
        assert holder.stdout is not None
        epoch = int(holder.stdout.readline())
        until_s = monotonic_s() + 3.0  # longer than the session timeout
        while monotonic_s() < until_s:
            assert manager.get(_PLACE, "t") == Versioned(b"there", epoch)
        with pytest.raises(StateConflictError, match="is held by another"):
            manager.hold(_PLACE, "t", b"here")
        holder.kill()
    wait_until(lambda: manager.get(_PLACE, "t") is None, 2 * _SOON_S, "the killed holder's node is removed")


def test_a_node_released_while_the_server_was_silent_is_removed_later(
    open_manager: Open, relay: Relay, zookeeper: ZooKeeperServer
) -> None:
    """The session lives as long as `heron run`. With the lock in place, no command could kill the topology."""
    manager = open_manager(_format_address(relay.address), session_timeout_s=60.0, timeout_s=_ANSWER_S)
    other = open_manager(_format_address(zookeeper.address))
    locks = [manager.hold(NodeKind.LOCK, name, b"mine") for name in ("t", "taken-again")]
    with _fault(relay_faults(relay).silent):
        for lock in locks:
            lock.release()
        assert other.list(NodeKind.LOCK) == ("t", "taken-again")
    again = wait_until(lambda: _held(manager, "taken-again"), 30, "the server answers again")
    wait_until(lambda: other.list(NodeKind.LOCK) == ("taken-again",), 30, "the released node is removed")
    assert again is not None
    assert not again.lost()
    assert other.get(NodeKind.LOCK, "taken-again") == Versioned(b"again", again.epoch)
    with in_time(1.0):
        manager.close()


def test_close_does_not_wait_for_a_silent_server(open_manager: Open, relay: Relay) -> None:
    """`timeout_s` may be 9 s, but an executor and its processes have five seconds to end."""
    for asked in (True, False):
        manager = open_manager(_format_address(relay.address), session_timeout_s=60.0, timeout_s=2.0 if asked else 9.0)
        manager.watch(_PLACE, "t", lambda _present: None)
        with _fault(relay_faults(relay).silent):
            if asked:
                with pytest.raises(StateUnavailableError):
                    manager.get(_PLACE, "t")
            with in_time(0.5 if asked else 2.0):
                manager.close()
            manager.close()


def test_a_hold_whose_answer_was_lost_can_be_taken_again(open_manager: Open, relay: Relay) -> None:
    """The session lives and owns the node, but no hold in this process does."""
    manager = open_manager(_format_address(relay.address), session_timeout_s=60.0, timeout_s=_ANSWER_S)
    manager.set(NodeKind.TOPOLOGY, "t", b"")
    hold = manager.hold(_PLACE, "t", b"first")
    hold.release()
    with _fault(relay_faults(relay).answers_lost), pytest.raises(StateUnavailableError):
        manager.hold(_PLACE, "t", b"second")
    wait_until(lambda: _answers(manager), 90, "the server answers again")
    third = manager.hold(_PLACE, "t", b"third")
    assert manager.get(_PLACE, "t") == Versioned(b"third", third.epoch)
    assert not third.lost()


def test_a_change_whose_answer_was_lost_is_recognised_and_made_once(open_manager: Open, relay: Relay) -> None:
    """Fifty connections break after a request has arrived. Each change still returns its version.

    A driver that repeats requests without a check would report a conflict with its own change, or make it twice.
    """
    manager = open_manager(_format_address(relay.address), session_timeout_s=60.0, timeout_s=9.0)
    version = manager.set(NodeKind.TOPOLOGY, "t", b"0")
    done = threading.Event()
    cuts = 0

    def break_connections() -> None:
        nonlocal cuts
        while not done.is_set():
            swallowed, accepted = relay.swallowed_bytes, relay.accepted
            relay.swallows_answers = True
            while relay.swallowed_bytes == swallowed and not done.wait(0.0005):
                pass
            relay.refuses = True  # no open connection loses bytes, and no new connection starts silent
            relay.cut()
            relay.swallows_answers = relay.refuses = False
            cuts += 1
            while relay.accepted == accepted and not done.wait(0.0005):
                pass
            done.wait(0.01 * (cuts % 5))  # some cuts hit a read, some a write

    breaking = threading.Thread(target=break_connections)
    breaking.start()
    try:
        while cuts < 50:
            for expected in (version, None):
                assert manager.set(NodeKind.TOPOLOGY, "t", b"x", expected=expected) == version + 1
                version += 1
            hold = manager.hold(_PLACE, "t", b"x")
            assert not hold.lost()
            if version % 4 == 0:
                manager.delete(_PLACE, "t")
            hold.release()
            assert manager.get(_PLACE, "t") is None
    finally:
        done.set()
        breaking.join()
        relay.swallows_answers = False


def test_a_server_that_never_answers_a_connection_is_given_up(open_manager: Open, relay: Relay) -> None:
    """A server that starts does this. The session is much longer than the wait, so it is kept."""
    manager = open_manager(_format_address(relay.address), session_timeout_s=_LONG_S, timeout_s=1.0)
    hold = manager.hold(_PLACE, "t", b"here")
    relay.swallows_answers = True
    accepted = relay.accepted
    relay.cut()
    wait_until(lambda: relay.accepted > accepted + 1, _SOON_S, "a second connection, because the first is silent")
    relay.swallows_answers = False
    wait_until(lambda: _answers(manager), _SOON_S, "the server answers again")
    assert not hold.lost()


@pytest.mark.servers
def test_a_restart_of_a_killed_server_loses_nothing(open_manager: Open, tmp_path: Path) -> None:
    """Values, versions, holds and watches continue. While the server is away, no node counts as removed."""
    server = ZooKeeperServer(tmp_path / "zk")
    server.start()
    try:
        manager = open_manager(_format_address(server.address), session_timeout_s=_LONG_S, timeout_s=2.0)
        manager.set(NodeKind.TOPOLOGY, "t", b"one")
        hold = manager.hold(_PLACE, "t", b"here")
        seen: queue.Queue[Versioned | None] = queue.Queue()
        manager.watch(NodeKind.TOPOLOGY, "t", seen.put)
        assert seen.get_nowait() == Versioned(b"one", 1)
        server.kill()
        with pytest.raises(StateUnavailableError, match="does not answer; is it running"):
            manager.get(NodeKind.TOPOLOGY, "t")
        assert not hold.lost()
        server.start()
        wait_until(lambda: _answers(manager), 90, "the server answers again")
        assert open_manager(_format_address(server.address)).set(NodeKind.TOPOLOGY, "t", b"two") == 2
        assert seen.get(timeout=_SOON_S) == Versioned(b"two", 2)
        assert not hold.lost()
    finally:
        server.kill()


@pytest.mark.servers
def test_a_server_that_lost_its_data_does_not_look_like_an_empty_store(open_manager: Open, tmp_path: Path) -> None:
    """After its disk was replaced, a client that saw newer data gets an error and not an empty list."""
    server = ZooKeeperServer(tmp_path / "zk")
    server.start()
    try:
        manager = open_manager(_format_address(server.address), session_timeout_s=_LONG_S, timeout_s=2.0)
        for number in range(20):
            manager.set(NodeKind.TOPOLOGY, "t", b"%d" % number)
        server.kill()
        server.data.rename(tmp_path / "replaced")
        server.start()
        with pytest.raises(StateUnavailableError, match="does not answer"):
            manager.get(NodeKind.TOPOLOGY, "t")
    finally:
        server.kill()


def test_close_is_quick_during_changes_and_without_a_server(
    open_manager: Open, relay: Relay, zookeeper: ZooKeeperServer
) -> None:
    """Every process of a run closes its manager when the run ends, which is when its watched nodes are removed."""
    writer = open_manager(_format_address(zookeeper.address))
    for number in range(40):
        manager = open_manager(_format_address(relay.address), timeout_s=9.0)
        manager.watch(_PLACE, "t", lambda _present: None)
        writer.set(_PLACE, "t", b"%d" % number)
        if number > 30:
            relay.cut()
        with in_time(1.0):
            manager.close()


def test_a_closed_manager_raises(open_manager: Open, zookeeper: ZooKeeperServer) -> None:
    """Use after close is a mistake of the caller. It must not look like an empty store."""
    manager = open_manager(_format_address(zookeeper.address))
    hold = manager.hold(_PLACE, "t", b"here")
    manager.close()
    assert hold.lost()
    hold.release()
    with pytest.raises(StateError, match="is closed"):
        manager.get(NodeKind.TOPOLOGY, "t")
