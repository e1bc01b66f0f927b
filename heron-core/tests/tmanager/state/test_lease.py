"""A standby takes the hold of an ended leader, unless it is to stop itself."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

import pytest

from heron.errors import StateConflictError
from heron.ipc.reactor import Reactor
from heron.spi.statemgr import StateManager
from heron.state_nodes.tmanager_location import TManagerLocation
from heron.tmanager.state.lease import Lease
from heron_testing.fake_clock import FakeClock

LOCATION = TManagerLocation("tcp://127.0.0.1:1", "words-1", 1, "here")


class Node:
    """The node that a leader holds, its hold, and the timer of a standby."""

    epoch = 7

    def __init__(self) -> None:
        self.is_held = True
        self.attempts = 0
        self.delay_s = 0.0
        self.on_attempt: Callable[[], object] = lambda: None
        self.timers: list[Callable[[], object]] = []

    def hold(self, *_: object) -> Node:
        """As `StateManager.hold`."""
        self.attempts += 1
        if self.is_held:
            msg = "another one leads"
            raise StateConflictError(msg)
        self.is_held = True
        self.on_attempt()
        return self

    def release(self) -> None:
        """As `Hold.release`."""
        self.is_held = False

    def after(self, delay_s: float, call: Callable[[], object]) -> None:
        """As `Reactor.after`."""
        self.delay_s = delay_s
        self.timers.append(call)

    def next_attempt(self) -> None:
        """The time of the next attempt has come."""
        self.timers.pop()()


class Standby:
    """A standby of a node, which can be asked to stop."""

    def __init__(self, node: Node) -> None:
        self.node, self.stops = node, False
        self.led: list[int] = []
        self.clock = FakeClock()
        self.lease = Lease(
            cast("Reactor", node), cast("StateManager", node), "words", lambda: self.stops, self.clock.monotonic_s
        )
        self.lease.take(LOCATION, self.led.append)

    def stop(self) -> None:
        """SIGTERM has arrived."""
        self.stops = True


@pytest.fixture
def standby() -> Standby:
    return Standby(Node())


def test_it_leads_when_the_leader_has_ended(standby: Standby) -> None:
    """It tries again until then."""
    standby.node.next_attempt()
    standby.node.is_held = False
    standby.node.next_attempt()
    assert (standby.led, standby.node.attempts, standby.node.timers) == ([7], 3, [])
    standby.lease.release()
    assert not standby.node.is_held


def test_it_tries_no_more_when_it_is_to_stop(standby: Standby) -> None:
    """The end of a topology: the leader gives its hold up after the signal to the standby, whose timer is due first."""
    standby.stop()
    standby.node.is_held = False
    standby.node.next_attempt()
    assert (standby.led, standby.node.attempts, standby.node.timers) == ([], 1, [])


def test_it_gives_up_what_it_gets_when_it_is_to_stop(standby: Standby) -> None:
    """The signal may arrive during an attempt."""
    standby.node.is_held = False
    standby.node.on_attempt = standby.stop
    standby.node.next_attempt()
    assert (standby.led, standby.node.is_held, standby.node.timers) == ([], False, [])


def test_it_tries_often_only_at_first(standby: Standby) -> None:
    """A restarted topology manager must lead soon. A standby waits for days, and must not load the store."""
    soon_s = standby.node.delay_s
    standby.clock.advance(4.9)
    standby.node.next_attempt()
    assert standby.node.delay_s == soon_s
    standby.clock.advance(0.1)
    standby.node.next_attempt()
    assert standby.node.delay_s > soon_s
