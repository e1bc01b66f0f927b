"""A rebalance: what is measured, and which components have nothing to move."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import TypeVar, cast

import pytest

from heron.api.definition import GroupingKind
from heron.errors import UsageError
from heron.ipc.documents.metric_names import EMIT_COUNT, EXECUTE_COUNT
from heron.ipc.documents.metrics_table import MetricsReader, MetricsRow, encode_metrics, read_metrics, table_of
from heron.planner.packing_plan import ContainerPlan, InstancePlan, PackingPlan, Resource
from heron.planner.physical_plan import PlanIndex, TopologyState, physical_plan
from heron_cli.launch import rebalance
from heron_cli.launch.rebalance import measured_rates, plan_rebalance
from heron_cli.topologies.running.remote_topology import RemoteTopology
from heron_testing.builders import bolt, spout, stream, subscription, topology

C = TypeVar("C")
EACH = Resource(1.0, 1 << 20, 1 << 20)


class Measured:
    """A topology whose tasks have these totals, one answer after the other; the last one stays."""

    def __init__(self, *answers: Mapping[int, float]) -> None:
        self.answers = list(answers)

    def read_task_metrics(self, names: Collection[str], reader: MetricsReader[C]) -> None:
        """Give the next answer; the counts of a task come by stream, with other metrics between them.

        A topology manager of an earlier version sends metrics that nobody has asked for.
        """
        assert tuple(names) == (EXECUTE_COUNT,)
        rows = (
            MetricsRow("count", task_id, "", name, "counter", "tuples", value)
            for task_id, count in (self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]).items()
            for name, value in ((EXECUTE_COUNT, count / 4), (EMIT_COUNT, 1e9), (EXECUTE_COUNT, 3 * count / 4))
        )
        read_metrics(encode_metrics(table_of(rows)), reader)


@pytest.fixture
def index() -> PlanIndex:
    """word (task 1) -> count (tasks 2, 3) by key -> one (task 4) by key and any (tasks 5, 6) by shuffle."""
    definition = topology(
        spout("word", stream("word"), entry="wc:Word"),
        bolt("count", subscription("word", GroupingKind.FIELDS, "word"), parallelism=2, entry="wc:Count"),
        bolt("one", subscription("word", GroupingKind.FIELDS, "word"), entry="wc:One"),
        bolt("any", subscription("word", GroupingKind.SHUFFLE), parallelism=2, entry="wc:Any"),
    )
    names = ["word", "count", "count", "one", "any", "any"]
    instances = tuple(InstancePlan(name, at + 1, names[:at].count(name), EACH) for at, name in enumerate(names))
    packing = PackingPlan("plan", (ContainerPlan(1, instances, EACH),))
    return PlanIndex(
        physical_plan(packing, definition, [], version=1, epoch=1, topology_id="t-1", state=TopologyState.RUNNING)
    )


def planned(index: PlanIndex, component: str, *answers: Mapping[int, float]) -> rebalance.Rebalance:
    return plan_rebalance(index, cast("RemoteTopology", Measured(*answers)), [component])


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebalance, "_MEASURE_S", 0.01)
    monkeypatch.setattr(rebalance, "_LOOK_S", 0.001)


def test_the_tuples_of_the_measured_time_count(index: PlanIndex) -> None:
    """Totals are of the whole life of a process, and say little about now."""
    found = planned(index, "count", {2: 1000.0, 3: 9000.0}, {2: 1030.0, 3: 9010.0})
    busy, idle = (each.now_per_s for each in found.loads)
    assert busy == pytest.approx(3 * idle)
    assert all(each.expected_per_s == pytest.approx((busy + idle) / 2, rel=0.06) for each in found.loads)
    assert found.owners["count"].table().count(2) < 512


def test_reports_of_tasks_that_come_at_other_moments_do_not_look_like_a_skew() -> None:
    """Both have 100 tuples/s and report each second. In 5 s, six reports of one arrive, and four of the other."""
    looks = [number / 4 for number in range(21)]

    def total(at_s: float, phase_s: float) -> float:
        return 100.0 * int(at_s + phase_s)

    found = measured_rates([(at_s, {2: total(at_s, 0.99), 3: total(at_s, 0.0)}) for at_s in looks])
    assert found == pytest.approx({2: 100.0, 3: 100.0})


def test_with_a_long_export_period_the_whole_time_counts() -> None:
    """One report, or none, comes meanwhile."""
    observations = [
        (10.0, {2: 500.0, 3: 7.0}),
        (12.0, {2: 1000.0, 3: 7.0, 4: 50.0}),
        (15.0, {2: 1000.0, 3: 7.0, 4: 50.0}),
    ]
    assert measured_rates(observations) == {2: 100.0, 3: 0.0, 4: 10.0}


def test_a_task_that_restarts_meanwhile_counts_from_its_restart() -> None:
    """Its total has become smaller."""
    observations = [(0.0, {2: 9000.0}), (2.0, {2: 9100.0}), (3.0, {2: 10.0}), (4.0, {2: 30.0}), (5.0, {2: 50.0})]
    assert measured_rates(observations) == {2: 20.0}
    assert measured_rates([(0.0, {2: 9000.0}), (5.0, {2: 10.0})]) == {2: 2.0}


def test_even_tasks_have_nothing_to_move(index: PlanIndex) -> None:
    """The loads are shown nevertheless."""
    found = planned(index, "count", {2: 0.0, 3: 0.0}, {2: 100.0, 3: 101.0})
    assert (found.owners, len(found.loads)) == ({}, 2)


@pytest.mark.parametrize(
    ("component", "reason"),
    [
        ("coun", "no such component (nearest: 'count')"),
        ("word", "no input has a fields grouping"),
        ("any", "no input has a fields grouping"),
        ("one", "it has one task, which owns all key groups; add tasks"),
        ("count", "has processed no tuple for 0.01 s, so nothing tells what to move"),
    ],
)
def test_a_component_without_anything_to_measure_is_refused(index: PlanIndex, component: str, reason: str) -> None:
    """Nothing is asked of the topology manager then."""
    with pytest.raises(UsageError) as refused:
        planned(index, component, {2: 5.0, 3: 5.0}, {2: 5.0, 3: 5.0})
    assert reason in str(refused.value)
