"""A loss between processes fails the roots in flight at once, in every ledger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from heron.ipc.frames.frame import FrameKind, parse_frame_header, parse_segment, segment_routes
from heron.ipc.frames.tracking import RootOutcome, new_roots_derived, parse_settled
from heron_testing.relay import Relay
from heron_testing.waiting import wait_until

if TYPE_CHECKING:
    from conftest import Instance, Site

pytestmark = pytest.mark.leaks_nothing

KEY = 77


def opened(site: Site, instance: Instance, task: int, rows: int) -> None:
    """Inserts roots into the ledger of a task, and waits until they are in it."""
    size = instance.send(new_roots_derived(task, 100, KEY, rows, (2,)))
    instance.released(size)


def outcomes(site: Site, instance: Instance) -> list[tuple[RootOutcome, list[int]]]:
    """The outcomes in the next ack frame."""
    frame = site.receive(instance.channel)
    while parse_frame_header(frame)[0] != FrameKind.ACK:
        frame = site.receive(instance.channel)
    told = [parse_settled(frame, parse_segment(frame, start)) for start, _, _ in segment_routes(frame)]
    return [(outcome, list(roots)) for outcome, roots in told]


def test_a_gap_in_a_link_fails_the_roots_of_every_ledger(site: Site) -> None:
    """The missing frames may have carried tuples of any tree."""
    site.start(1)
    site.start(2)
    site.plan()
    here, there, broken = (site.registered(task) for task in (1, 3, 2))
    opened(site, here, 1, 2)
    opened(site, there, 3, 3)
    broken.send(site.tuples([4]), skip=1)
    assert outcomes(site, here) == [(RootOutcome.LOST, [100, 101])]
    assert outcomes(site, there) == [(RootOutcome.LOST, [100, 101, 102])]


def test_a_lost_task_fails_the_roots_of_every_ledger(site: Site) -> None:
    """The stream manager of the lost task reports the loss to its peers."""
    site.start(1)
    site.start(2)
    site.plan()
    here, there, lost = (site.registered(task) for task in (1, 3, 2))
    opened(site, here, 1, 1)
    opened(site, there, 3, 1)
    lost.channel.close()
    assert outcomes(site, here) == [(RootOutcome.LOST, [100])]
    assert outcomes(site, there) == [(RootOutcome.LOST, [100])]


def test_data_under_way_to_a_peer_that_is_replaced_is_lost(site: Site) -> None:
    """It fails the roots in the ledgers of others, too."""
    here = site.start(1)
    first = site.start(2)
    host, _, port = first.endpoint.removeprefix("tcp://").partition(":")
    relay = Relay((host, int(port)))
    site.address_of_peer[2] = "tcp://{}:{}".format(*relay.address)
    site.plan()
    spout, bolt = site.registered(1), site.registered(3)
    spout.send(site.tuples([3], b"a"))
    assert bolt.payloads(1) == [b"a"]
    wait_until(lambda: (window := here.context.router.outlets[3].window) is not None and window.released_bytes > 0)
    relay.swallows = True
    sent_bytes = here.context.counters.bytes_to_peers
    spout.send(site.tuples([3], b"b"))
    wait_until(lambda: here.context.counters.bytes_to_peers > sent_bytes)
    first.close()
    del site.address_of_peer[2]
    site.start(2, incarnation=1)
    site.plan(version=2)
    wait_until(lambda: here.context.counters.broken_links == 1)
    relay.close()


def test_data_before_the_first_plan_waits_for_it(site: Site) -> None:
    """Instances outlive their stream manager and reconnect at once, maybe before the plan arrives."""
    stmgr = site.start(1)
    early = site.instance(1)
    early.register()
    early.released(early.send(site.tuples([2], b"early")))
    site.plan()
    bolt = site.registered(2)
    assert bolt.payloads(1) == [b"early"]
    assert stmgr.context.router.unroutable_segments == 0
