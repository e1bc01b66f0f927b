"""Back pressure between stream managers, over real sockets: told to peers, and forgotten with those who told it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from heron_testing.pytest_plugin import wait_until
from heron_testing.relay import Relay

if TYPE_CHECKING:
    from conftest import Instance, Site

pytestmark = pytest.mark.leaks_nothing

SIZE = 3000
ENOUGH = 14  # segments of that size: above the high watermark of one stream manager, below the hard limit
UNDER_WAY = 3  # of them, to a task that reads none


def jam(site: Site, spout: Instance, task: int) -> None:
    """The spout in container 1 sends more for a task of container 2 than that holds without complaint."""
    for _ in range(ENOUGH):
        spout.send(site.tuples([task], b"x" * SIZE))
    spout.wait_until_held_by(task)
    waiting_bytes = (ENOUGH - UNDER_WAY) * len(site.tuples([task], b"x" * SIZE))
    wait_until(lambda: site.stmgrs[2].context.router.outlets[task].queued_bytes == waiting_bytes)


def test_a_peer_says_who_is_slow_and_the_feeding_spout_hears_it(site: Site) -> None:
    """The buffer that is full is in the other container; its own stream manager names the culprit to everyone."""
    site.start(1)
    there = site.start(2)
    site.plan()
    spout, slow = site.registered(1), site.registered(3)
    jam(site, spout, 3)
    pressure = there.expect("pressure").pressure
    assert (pressure.task_id, pressure.cause) == (3, "the task is slow")
    assert len(slow.payloads(ENOUGH)) == ENOUGH
    spout.wait_until_held_by()


def test_two_culprits_in_two_containers_are_lifted_one_by_one(site: Site) -> None:
    """A spout goes on when the last of them has room again."""
    site.start(1)
    site.start(2)
    site.plan()
    spout, near, far = (site.registered(task) for task in (1, 2, 3))
    for _ in range(ENOUGH):
        spout.send(site.tuples([2, 3], b"x" * SIZE))
    spout.wait_until_held_by(2, 3)
    assert len(near.payloads(ENOUGH)) == ENOUGH
    spout.wait_until_held_by(3)
    spout.look_all()
    assert spout.held_by == {3}
    assert len(far.payloads(ENOUGH)) == ENOUGH
    spout.wait_until_held_by()


def test_a_stream_manager_that_dies_takes_its_reports_with_it(site: Site) -> None:
    """It can lift nothing any more: who it held back goes on when the plan says that it is gone."""
    site.start(1)
    there = site.start(2)
    site.plan()
    spout, _slow = site.registered(1), site.registered(3)
    jam(site, spout, 3)
    there.close()
    site.stmgrs.pop(2)
    site.plan(version=2)
    spout.wait_until_held_by()


def test_a_restarted_stream_manager_hears_from_its_peers_who_is_slow(site: Site) -> None:
    """Its spouts are told in the answer to their registration, before they send a tuple."""
    first = site.start(1)
    site.start(2)
    site.plan()
    spout, slow = site.registered(1), site.registered(3)
    jam(site, spout, 3)
    first.close()
    site.start(1, incarnation=1)
    site.plan(version=2)
    wait_until(lambda: site.stmgrs[1].context.pressure.culprits_of(1) == (3,))
    again = site.instance(1, incarnation=1)
    assert list(again.register().culprits) == [3]
    again.expect_plan()
    slow.drain(ENOUGH)
    again.wait_until_held_by()


def test_what_was_lifted_while_a_connection_was_broken_is_lifted(site: Site) -> None:
    """A new session says what holds now, and what the one before said is forgotten."""
    here = site.start(1)
    site.start(2)
    host, _, port = here.endpoint.removeprefix("tcp://").partition(":")
    relay = Relay((host, int(port)))
    site.by_way_of[1] = "tcp://{}:{}".format(*relay.address)
    try:
        site.plan()
        spout, slow = site.registered(1), site.registered(3)
        jam(site, spout, 3)
        pressure = here.context.pressure
        wait_until(lambda: pressure.culprits_of(1) == (3,) and not pressure.own_culprits())
        relay.swallows = True  # from here on container 1 hears nothing of container 2
        assert len(slow.payloads(ENOUGH)) == ENOUGH
        wait_until(lambda: not site.stmgrs[2].context.router.culprits())
        spout.look_all()
        assert spout.held_by == {3}
        relay.swallows = False
        relay.cut()
        spout.wait_until_held_by()
    finally:
        relay.close()


def test_a_peer_that_takes_nothing_is_named_instead_of_its_task(site: Site) -> None:
    """The task has nothing to do: what waits for it does not get through its stream manager."""
    here, there = site.start(1), site.start(2)
    host, _, port = there.endpoint.removeprefix("tcp://").partition(":")
    relay = Relay((host, int(port)))
    site.by_way_of[2] = "tcp://{}:{}".format(*relay.address)
    try:
        site.plan()
        spout, task = site.registered(1), site.registered(3)
        spout.send(site.tuples([3], b"first"))
        assert task.payloads(1) == [b"first"]
        relay.swallows = True
        for _ in range(ENOUGH):
            spout.send(site.tuples([3], b"x" * SIZE))
        pressure = here.expect("pressure").pressure
        assert pressure.task_id == 3
        assert pressure.cause == "the stream manager of container 2 is slow, or the network to it"
    finally:
        relay.close()


def test_a_task_that_only_waits_for_another_is_not_called_slow(site: Site) -> None:
    """Its output is held at the hard limit: the other one is to be looked at."""
    here = site.start(1)
    site.start(2)
    site.plan()
    spout, middle, _slow = site.registered(1), site.registered(2), site.registered(3)
    for _ in range(3 * ENOUGH):
        middle.send(site.tuples([3], b"x" * SIZE))
    wait_until(lambda: here.context.router.outlets[3].full)
    for _ in range(ENOUGH):
        spout.send(site.tuples([2], b"x" * SIZE))
    while (pressure := here.expect("pressure").pressure).task_id != 2:
        assert pressure.task_id == 3
    assert pressure.cause == "its output waits for task 3"
