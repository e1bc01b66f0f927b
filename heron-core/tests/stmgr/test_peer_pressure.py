"""Back pressure between stream managers, over real sockets: reports to peers, and their end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from heron_testing.relay import Relay
from heron_testing.waiting import wait_until

if TYPE_CHECKING:
    from conftest import Instance, Site

pytestmark = pytest.mark.leaks_nothing

SIZE = 3000
ENOUGH = 14  # segments of that size: above the high watermark of one stream manager, and below the hard limit
UNDER_WAY = 3  # of them, to a task that reads none


def jam(site: Site, spout: Instance, task: int) -> None:
    """The spout in container 1 sends data above the high watermark to a task of container 2."""
    for _ in range(ENOUGH):
        spout.send(site.tuples([task], b"x" * SIZE))
    spout.wait_until_throttled_by(task)
    waiting_bytes = (ENOUGH - UNDER_WAY) * len(site.tuples([task], b"x" * SIZE))
    wait_until(lambda: site.stmgrs[2].context.router.outlets[task].queued_bytes == waiting_bytes)


def test_a_peer_reports_a_slow_task_and_the_feeding_spout_is_throttled(site: Site) -> None:
    """The full outlet is in the other container, whose stream manager reports the culprit."""
    site.start(1)
    there = site.start(2)
    site.plan()
    spout, slow = site.registered(1), site.registered(3)
    jam(site, spout, 3)
    pressure = there.expect("pressure").pressure
    assert (pressure.task_id, pressure.cause) == (3, "the task is slow")
    assert len(slow.payloads(ENOUGH)) == ENOUGH
    spout.wait_until_throttled_by()


def test_two_culprits_in_two_containers_are_lifted_one_by_one(site: Site) -> None:
    """A spout continues when the last of them has room again."""
    site.start(1)
    site.start(2)
    site.plan()
    spout, near, far = (site.registered(task) for task in (1, 2, 3))
    for _ in range(ENOUGH):
        spout.send(site.tuples([2, 3], b"x" * SIZE))
    spout.wait_until_throttled_by(2, 3)
    assert len(near.payloads(ENOUGH)) == ENOUGH
    spout.wait_until_throttled_by(3)
    spout.handle_all()
    assert spout.throttled_by == {3}
    assert len(far.payloads(ENOUGH)) == ENOUGH
    spout.wait_until_throttled_by()


def test_the_reports_of_a_dead_stream_manager_end_with_the_plan(site: Site) -> None:
    """It cannot withdraw them any more, so the throttled spouts continue when it leaves the plan."""
    site.start(1)
    there = site.start(2)
    site.plan()
    spout, _slow = site.registered(1), site.registered(3)
    jam(site, spout, 3)
    there.close()
    site.stmgrs.pop(2)
    site.plan(version=2)
    spout.wait_until_throttled_by()


def test_the_reports_of_a_replaced_stream_manager_end_before_its_successor_connects(site: Site) -> None:
    """The successor may be unable to connect for long, and the spout must not wait for it."""
    here = site.start(1)
    there = site.start(2)
    site.plan()
    spout, _slow = site.registered(1), site.registered(3)
    jam(site, spout, 3)
    wait_until(lambda: not here.context.pressure.own_culprits())
    there.close()
    site.start(2, incarnation=1)
    site.plan(version=2, receivers=(1,))  # without a plan the successor connects to no peer
    spout.wait_until_throttled_by()


def test_a_restarted_stream_manager_receives_the_culprits_from_its_peers(site: Site) -> None:
    """Its spouts receive them in the welcome, before they send a tuple."""
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
    again.wait_until_throttled_by()


def test_back_pressure_that_ends_while_a_connection_is_broken_ends(site: Site) -> None:
    """A new session reports the present culprits, and the reports of the former one are dropped."""
    here = site.start(1)
    site.start(2)
    host, _, port = here.endpoint.removeprefix("tcp://").partition(":")
    relay = Relay((host, int(port)))
    site.address_of_peer[1] = "tcp://{}:{}".format(*relay.address)
    try:
        site.plan()
        spout, slow = site.registered(1), site.registered(3)
        jam(site, spout, 3)
        pressure = here.context.pressure
        wait_until(lambda: pressure.culprits_of(1) == (3,) and not pressure.own_culprits())
        relay.swallows = True  # from here on container 1 receives nothing from container 2
        assert len(slow.payloads(ENOUGH)) == ENOUGH
        wait_until(lambda: not site.stmgrs[2].context.router.culprits())
        spout.handle_all()
        assert spout.throttled_by == {3}
        relay.swallows = False
        relay.cut()
        spout.wait_until_throttled_by()
    finally:
        relay.close()


def test_a_stream_manager_that_takes_no_data_is_named_instead_of_its_task(site: Site) -> None:
    """The task is idle, because its data does not get through its stream manager."""
    here, there = site.start(1), site.start(2)
    host, _, port = there.endpoint.removeprefix("tcp://").partition(":")
    relay = Relay((host, int(port)))
    site.address_of_peer[2] = "tcp://{}:{}".format(*relay.address)
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


def test_a_task_that_only_waits_for_another_one_is_not_reported_as_slow(site: Site) -> None:
    """Its credit is held at the hard limit of the other task, which is the cause."""
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
