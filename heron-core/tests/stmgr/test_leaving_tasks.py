"""Tasks that an update adds to or removes from the container of a stream manager, and containers that leave."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from heron.api.definition import GroupingKind
from heron.ipc import control_pb2 as pb
from heron.ipc.envelope import Envelope, parse_control
from heron.ipc.frames.tracking import new_roots_derived
from heron.planner.physical_plan import PhysicalPlan, PlanIndex, PlanUpdate, StreamManagerLocation, UpdatePhase
from heron.state_nodes.plans import decode_physical_plan, encode_plan
from heron.stmgr.local_tasks import LocalTasks
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology
from heron_testing.waiting import wait_until

if TYPE_CHECKING:
    from conftest import Instance, Site, Stmgr

pytestmark = pytest.mark.leaks_nothing

CONTAINERS = {1: 1, 2: 1, 3: 2, 4: 2, 5: 2}
LEFT, RUNNING = pb.TASK_PHASE_LEFT, pb.TASK_PHASE_RUNNING


def plan_with(
    site: Site | None, version: int, bolts: tuple[int, ...] = (2, 3, 4), update: PlanUpdate | None = None
) -> PhysicalPlan:
    """Spout task 1 and these bolt tasks."""
    definition = topology(
        spout("spout", stream("v")), bolt("bolt", subscription("spout", GroupingKind.ALL), parallelism=len(bolts))
    )
    used = {CONTAINERS[task] for task in (1, *bolts)}
    stmgrs = [
        StreamManagerLocation(container, each.context.spec.incarnation, each.endpoint, "h", 1)
        for container, each in (site.stmgrs if site else {}).items()
        if container in used
    ]
    tasks = {"spout": (1,), "bolt": bolts}
    plan = physical_plan(definition, tasks, containers=CONTAINERS, stmgrs=stmgrs, version=version)
    return replace(plan, update=update)


def removes(*tasks: int) -> PlanUpdate:
    return PlanUpdate(2, UpdatePhase.SWITCH, "target", removed=tasks)


def send(site: Site, plan: PhysicalPlan) -> None:
    """Every stream manager receives the plan."""
    document = encode_plan(plan)
    decode_physical_plan(document, "test")  # msgspec must not inspect a type in several threads at once
    for stmgr in site.stmgrs.values():
        stmgr.send_as_tmanager(Envelope(epoch=1, plan=pb.Plan(version=plan.version, document=document)))


def arrived(stmgr: Stmgr, tasks: set[int]) -> None:
    """Wait until the stream manager has a plan with these members."""
    wait_until(lambda: stmgr.context.router.outlets.keys() == tasks)


def next_report(stmgr: Stmgr) -> tuple[int, int]:
    """Task and phase of the next report of a task."""
    report = stmgr.expect("task_report").task_report
    return report.task_id, report.phase


def with_root(site: Site) -> Instance:
    """Spout task 1 with a root in its ledger."""
    source = site.registered(1)
    source.released(source.send(new_roots_derived(1, 100, 77, 1, (2,))))
    return source


def in_flight_later(stmgr: Stmgr, source: Instance) -> int:
    """The roots in the ledger after another round of the stream manager."""
    source.released(source.credit_bytes + source.send())
    return stmgr.context.acks.in_flight()


def test_local_tasks_are_those_of_the_plan() -> None:
    """Before the first plan, the container's spec says them. The container leaves with its last task."""
    local = LocalTasks(2, (3, 4))
    assert local.ids == {3, 4}
    assert not local.container_leaves()
    local.set_plan(PlanIndex(plan_with(None, 2, update=removes(4))))
    assert local.ids == {3, 4}
    assert local.leaving == {4}
    assert not local.container_leaves()
    local.set_plan(PlanIndex(plan_with(None, 3, update=removes(3, 4))))
    assert local.container_leaves()
    local.set_plan(PlanIndex(plan_with(None, 4, (2,))))
    assert not local.ids
    assert not local.container_leaves()


def test_a_task_that_a_plan_adds_may_register(site: Site) -> None:
    """The stream manager has started without it. An instance that registers too early repeats its hello."""
    stmgr = site.start(2)
    site.start(1)
    send(site, plan_with(site, 1))
    site.registered(3)
    early = site.instance(5)
    early.send_hello()
    refused = parse_control(site.receive(early.registration)).refused
    assert "task 5 is not in container 2, which has tasks 3, 4" in refused.reason
    send(site, plan_with(site, 2, (2, 3, 4, 5)))
    arrived(stmgr, {1, 2, 3, 4, 5})
    early.register()
    assert early.expect_plan() == 2


def test_a_task_that_has_left_is_no_loss(site: Site) -> None:
    """Its session ends like that of a task that died, but it has processed everything."""
    stmgr = site.start(1)
    site.start(2)
    send(site, plan_with(site, 1))
    leaving = site.registered(2)
    send(site, plan_with(site, 2, update=removes(2)))
    assert leaving.expect_plan() == 2
    source = with_root(site)
    leaving.report(LEFT)
    assert next_report(stmgr) == (2, LEFT)
    leaving.channel.close()
    wait_until(lambda: stmgr.context.router.outlets[2].window is None)
    assert in_flight_later(stmgr, source) == 1


def test_a_task_that_has_left_gets_the_plan_without_it(site: Site) -> None:
    """So it learns that it is no member, and can discard output that belongs to no checkpoint."""
    stmgr = site.start(1)
    site.start(2)
    send(site, plan_with(site, 1, (2, 3)))
    arrived(stmgr, {1, 2, 3})
    leaving = site.registered(2)
    send(site, plan_with(site, 2, (3,)))
    assert leaving.expect_plan() == 2
    arrived(stmgr, {1, 3})


def test_the_last_tasks_of_a_container_have_left_when_peers_have_all_data(site: Site) -> None:
    """Their stream manager ends with them, and with it what waits in its outlets."""
    site.start(1)
    stmgr = site.start(2)
    send(site, plan_with(site, 1))
    first, second = site.registered(3), site.registered(4)
    send(site, plan_with(site, 2, update=removes(3, 4)))
    assert (first.expect_plan(), second.expect_plan()) == (2, 2)
    site.linked(2, 1, 2)
    big = b"x" * 15_000  # three of them exceed the hard limit, so the peer confirms the last one when task 2 has room
    size = first.send(*(site.tuples([2], big) for _ in range(3)))
    first.report(LEFT)
    first.released(size + first.send())
    second.report(RUNNING)
    assert next_report(stmgr) == (4, RUNNING), "the report of task 3 is held"
    second.report(LEFT)
    assert site.registered(2).payloads(3) == [big, big, big]
    assert {next_report(stmgr), next_report(stmgr)} == {(3, LEFT), (4, LEFT)}


def test_a_restarted_stream_manager_reports_no_task_that_has_left_before_its_plan(site: Site) -> None:
    """Instances repeat LEFT to it at once, and only the plan says that the container leaves."""
    stmgr = site.start(2, incarnation=1)
    first, second = site.instance(3), site.instance(4)
    first.register()
    second.register()
    first.report(LEFT)
    first.released(first.send(site.tuples([3])))
    second.report(RUNNING)
    assert next_report(stmgr) == (4, RUNNING)
    send(site, plan_with(site, 2, update=removes(3)))
    assert next_report(stmgr) == (3, LEFT)


def test_a_container_that_leaves_fails_no_roots(site: Site) -> None:
    """It has processed and sent everything; a stream manager that was replaced has not."""
    stmgr = site.start(1)
    site.start(2)
    send(site, plan_with(site, 1, update=removes(3, 4)))
    source = with_root(site)
    site.linked(1, 3, 4)
    send(site, plan_with(site, 2, (2,)))
    arrived(stmgr, {1, 2})
    assert in_flight_later(stmgr, source) == 1
    assert stmgr.context.counters.broken_links == 0
