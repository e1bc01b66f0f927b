"""An observation has what plan, status and metrics say, in the order of the data."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec.structs import replace as replaced

from heron.api.definition import GroupingKind
from heron.clock import wall_s
from heron.ipc.documents.metrics_table import MetricsRow, encode_metrics, read_metrics, table_of
from heron.ipc.documents.status import Culprit, TaskStatus, TopologyStatus, Unreached, UpdateStatus
from heron.planner.key_owners import KeyOwners
from heron.planner.physical_plan import CheckpointPlan, PhysicalPlan
from heron.spi.health_values import Subscription
from heron_health_manager.observing.observing import SampleReader, observation_of, shape_of
from heron_health_manager.observing.restart_history import RestartHistory
from heron_testing.builders import bolt, physical_plan, spout, stream, subscription, topology

STATUS = TopologyStatus("words", "words-1", "running", 0.0)


def plan_of(*split: int, groups: int = 64) -> PhysicalPlan:
    """`count` is declared before what it reads from."""
    definition = topology(
        bolt("count", subscription("split", GroupingKind.FIELDS, "w"), parallelism=1),
        spout("lines", stream("line")),
        bolt(
            "split",
            subscription("lines", GroupingKind.SHUFFLE),
            outputs=(stream("w"),),
            parallelism=len(split),
        ),
        bolt("watch", subscription("split", GroupingKind.ALL)),
        config={"topology.key.groups": groups},
    )
    return physical_plan(definition, {"count": (1,), "lines": (2,), "split": split, "watch": (9,)})


def test_components_come_behind_those_that_they_read_from() -> None:
    """The arithmetic of sizes goes through them once."""
    shape = shape_of(plan_of(3, 4))
    assert [each.name for each in shape.components] == ["lines", "split", "count", "watch"]
    assert [each.kind for each in shape.components] == ["spout", "bolt", "bolt", "bolt"]
    assert set(shape.component("split").tasks) == {3, 4}


def test_key_groups_bound_the_components_with_keys() -> None:
    """A task without a key group has nothing to do."""
    shape = shape_of(plan_of(3, 4))
    assert {each.name: each.most for each in shape.components} == {
        "lines": None,
        "split": None,
        "count": 64,
        "watch": None,
    }


def test_a_grouping_that_gives_every_task_everything_does_not_divide() -> None:
    """More tasks have as much to do each."""
    shape = shape_of(plan_of(3, 4))
    assert shape.component("count").inputs == (Subscription("split", "default", True),)
    assert shape.component("watch").inputs == (Subscription("split", "default", False),)


def test_the_version_changes_with_the_tasks_and_not_with_a_checkpoint() -> None:
    """Otherwise each checkpoint would begin the look-back window again."""
    plan = plan_of(3, 4)
    later = replace(plan, version=plan.version + 1, checkpoints=CheckpointPlan(7, 6))
    assert shape_of(later).version == shape_of(plan).version
    assert shape_of(plan_of(3, 4, 5)).version != shape_of(plan).version


def test_key_groups_that_move_change_the_version_and_are_marked() -> None:
    """Rates and totals from before the move are those of other keys."""
    plan = plan_of(3, 4)
    moved = replace(plan, key_owners={"count": KeyOwners(((1, 64),))})
    assert shape_of(moved).version != shape_of(plan).version
    assert [each.name for each in shape_of(plan).components if each.keys_moved] == []
    assert [each.name for each in shape_of(moved).components if each.keys_moved] == ["count"]


@pytest.mark.parametrize(
    ("value", "seen"),
    [((), ()), (["tasks <= 4", 5], ("tasks <= 4", "5")), ("tasks <= 4", ("tasks <= 4",)), (5, ("5",))],
)
def test_objectives_come_from_the_configuration_of_the_topology(value: object, seen: tuple[str, ...]) -> None:
    """Whatever is not text becomes text, so that the policy names it."""
    plan = plan_of(3)
    config = {"topology.objectives": value} if value else {}
    assert shape_of(replace(plan, topology=replace(plan.topology, config=config))).objectives == seen


def test_an_update_under_way_is_seen_in_the_status() -> None:
    """The plan may be a moment older than the status."""
    update = UpdateStatus(1, "switch", "target")
    assert observation_of(plan_of(3), replace(STATUS, update=update), (), 0.0).shape.changing
    over = replaced(update, phase="complete")
    assert not observation_of(plan_of(3), replace(STATUS, update=over), (), 0.0).shape.changing


def test_rows_keep_their_task_or_their_process_and_container() -> None:
    """The names of the engine's processes end with their container."""
    rows = (
        MetricsRow("split", 3, "split-3", "true-rate-in", "gauge", "tuples/s", 5.0),
        MetricsRow("", 0, "stmgr-12", "late-s", "counter", "s", 7.0, {"a": "b"}, 0.5),
        MetricsRow("", 0, "odd", "x", "gauge", "1", 1.0),
    )
    reader = SampleReader()
    read_metrics(encode_metrics(table_of(rows)), reader)
    of_task, of_stmgr, odd = reader.samples
    assert (of_task.component, of_task.task_id, of_task.process) == ("split", 3, "split-3")
    assert (of_stmgr.process, of_stmgr.container_id, of_stmgr.rate_per_s) == ("stmgr", 12, 0.5)
    assert (of_stmgr.labels, of_stmgr.value) == ({"a": "b"}, 7.0)
    assert (odd.process, odd.container_id) == ("odd", 0)


def test_restarts_culprits_and_silence_come_from_the_status() -> None:
    """Several peers may miss the same container: the longest silence counts."""
    status = replace(
        STATUS,
        tasks=(TaskStatus(3, "split", 1, "running", 1, restarts=4),),
        backpressure=(Culprit(3, "split", 1, 0.0),),
        unreached=(Unreached(2, 1, 3.0), Unreached(2, 0, 5.0)),
    )
    seen = observation_of(plan_of(3), status, (), 7.0)
    assert (seen.at_s, seen.restarts, seen.culprits, seen.silent) == (7.0, {3: 4}, frozenset({3}), {2: 5.0})
    young = replace(status, started_at_s=wall_s())
    assert observation_of(plan_of(3), young, (), 7.0, history=RestartHistory()).recent_restarts == {3: 4}
