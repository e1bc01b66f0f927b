"""Sessions between stream managers move to the ports of new keys: nothing is lost, sent again or out of order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from heron.ipc.keys import TopologyKeys, new_keys
from heron_testing.waiting import wait_until

if TYPE_CHECKING:
    from conftest import Instance, Site

pytestmark = pytest.mark.leaks_nothing


@pytest.fixture
def linked(site: Site) -> Site:
    """Two containers that have sessions with each other."""
    site.start(1)
    site.start(2)
    site.plan()
    site.linked(1, 3)
    return site


def give_keys(site: Site, container: int, version: int, *sets: TopologyKeys) -> None:
    """The executor of a container has written these sets into the spec file."""
    site.stmgrs[container].take_keys(version, *sets)


def send(spout: Instance, site: Site, numbers: range) -> None:
    """A spout in container 1 sends numbers to a bolt in container 2."""
    for number in numbers:
        spout.send(site.tuples([3], b"%d" % number))


def test_data_goes_on_in_order_while_keys_rotate(linked: Site) -> None:
    """The bolt gets each number once, before, between and after; no frame is counted as missing."""
    spout, bolt = linked.registered(1), linked.registered(3)
    old, new = linked.keys, new_keys()
    sent = 0
    for version, containers in enumerate((2, 1), start=1):
        give_keys(linked, containers, version, old, new)
        send(spout, linked, range(sent, sent + 20))
        linked.plan(version + 1)
        send(spout, linked, range(sent + 20, sent + 40))
        assert bolt.payloads(40, skip_plans=True) == [b"%d" % number for number in range(sent, sent + 40)]
        sent += 40
    wait_until(lambda: all(linked.stmgrs[each].peers_have_moved() for each in (1, 2)))
    for container in (1, 2):
        give_keys(linked, container, 9, new)
    linked.plan(9)
    send(spout, linked, range(sent, sent + 20))
    assert bolt.payloads(20, skip_plans=True) == [b"%d" % number for number in range(sent, sent + 20)]
    for each in linked.stmgrs.values():
        counters = each.context.counters
        assert (counters.lost_frames, counters.broken_links, counters.refused_frames, counters.lost_acks) == (0,) * 4


def test_a_port_that_cannot_be_reached_leaves_the_session_where_it_is(linked: Site) -> None:
    """Data flows with the old keys, and the rotation waits."""
    spout, bolt = linked.registered(1), linked.registered(3)
    old, new = linked.keys, new_keys()
    for container in (1, 2):
        give_keys(linked, container, 1, old, new)
    linked.stmgrs[2].hello.next_endpoint = "tcp://127.0.0.1:1"  # nobody listens there
    linked.plan(2)
    send(spout, linked, range(20))
    assert bolt.payloads(20, skip_plans=True) == [b"%d" % number for number in range(20)]
    wait_until(linked.stmgrs[2].peers_have_moved)
    assert not linked.stmgrs[1].peers_have_moved()
    counters = linked.stmgrs[2].context.counters
    assert (counters.lost_frames, counters.refused_frames) == (0, 0)
