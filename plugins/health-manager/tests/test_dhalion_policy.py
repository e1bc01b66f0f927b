"""The policy ``dhalion``: Heron's rules, and the steps that they need where ``ds2`` needs one."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from heron.spi.health_values import ActionKind, Observation, Sample, Subscription
from heron_health_manager.dhalion_policy import DhalionPolicy
from heron_health_manager.diagnosing.policy_round import Finding, run_round
from heron_testing.contracts.health import HealthPolicyContract, busy_topology
from heron_testing.topology_model.fluid_model import Model, Part

POLICY = DhalionPolicy.open({})


class TestContract(HealthPolicyContract):
    """The contract of the family."""

    name = "dhalion"
    driver_class = DhalionPolicy


def findings(window: list[Observation]) -> list[Finding]:
    found = run_round(POLICY, window)
    assert found is not None
    assert found.failed == ()
    return list(found.findings)


def chain(offered: float, split: int, count: int) -> Model:
    lines = Subscription("lines", "default")
    words = Subscription("split", "default")
    parts = (
        Part("lines", 1e-6, offered=offered),
        Part("split", 0.005, (lines,), ratio=20.0),
        Part("count", 0.0005, (words,), ratio=0.0),
    )
    return Model(parts, {"lines": 1, "split": split, "count": count})


def test_takes_several_steps_where_a_bottleneck_hides_the_next() -> None:
    """1,000 lines/s on 1 + 1 tasks. Each step sees only the component that is full now."""
    model, sizes = chain(1000.0, 1, 1), []
    for step in range(12):
        actions = [
            each.action for each in findings([model.observe(100.0 * step + at) for at in range(4)]) if each.action
        ]
        if not actions or model.shares()["lines"] > 1 - 1e-9:
            break
        assert len(actions[0].parallelism) == 1
        model.apply(actions[0].parallelism)
        sizes.append(dict(actions[0].parallelism))
    assert model.shares()["lines"] == pytest.approx(1.0)
    assert sizes == [{"count": 5}, {"split": 5}, {"count": 10}]


def test_takes_many_steps_to_become_small() -> None:
    """200 lines/s on 6 + 12 tasks, down to 1 + 2, of which `split` is fully used then."""
    model = chain(200.0, 6, 12)
    for step in range(12):
        found = [each.action for each in findings([model.observe(100.0 * step)]) if each.action]
        if not found:
            break
        model.apply(found[0].parallelism)
    assert (step, model.tasks) == (10, {"lines": 1, "split": 1, "count": 2})


def test_the_step_follows_the_share_of_back_pressure() -> None:
    """60 % of the time throttled: 1 + 0.6 / 0.4 = 2.5 times the tasks; never over five times."""
    model = chain(500.0, 1, 40)
    (finding,) = findings([model.observe(0.0)])
    assert finding.diagnosis.evidence == ("split causes back pressure 60% of the time, and its tasks are alike",)
    assert finding.action is not None
    assert finding.action.parallelism == {"split": 3}
    (far,) = findings([chain(100_000.0, 1, 4000).observe(0.0)])
    assert far.action is not None
    assert far.action.parallelism == {"split": 5}


def test_the_effect_to_expect_is_no_back_pressure_by_any_task() -> None:
    """The culprit need not be the first task of its component."""
    seen = busy_topology()
    window = [replace(each, culprits=frozenset({4})) for each in seen]
    found = run_round(POLICY, window)
    assert found is not None
    action = next(each.action for each in found.findings if each.action)
    assert action.expected is not None
    assert found.measurements.value(action.expected.measurement, action.expected.subject) == 1.0
    assert not action.expected.holds(1.0)
    assert action.expected.holds(0.0)


def test_shrinks_a_component_with_empty_queues() -> None:
    """One in five tasks goes, whatever the load is; the last one stays."""
    found = findings([chain(100.0, 10, 1).observe(0.0)])
    assert [(each.diagnosis.name, str(each.diagnosis.subject)) for each in found] == [("over-provisioned", "split")]
    assert found[0].action is not None
    assert found[0].action.parallelism == {"split": 8}


@pytest.mark.parametrize(("rate", "diagnosis"), [(250.0, "slow-task"), (2500.0, "data-skew")])
def test_one_long_queue_is_a_slow_task_or_skew(rate: float, diagnosis: str) -> None:
    """With more input than the others the task is not to blame."""

    def changed(sample: Sample) -> Sample:
        if sample.name == "in-queue-bytes":
            return structs.replace(sample, value=1e7 if sample.task_id == 2 else 100.0)
        if sample.name == "execute-count" and sample.task_id == 2:
            return structs.replace(sample, value=1e3 * rate, rate_per_s=rate)
        if sample.name == "consumed-bytes" and sample.task_id == 2:
            return structs.replace(sample, value=1e4 * rate)
        return sample

    window = [replace(each, samples=tuple(map(changed, each.samples))) for each in busy_topology()]
    (finding,) = findings(window)
    assert (finding.diagnosis.name, str(finding.diagnosis.subject)) == (diagnosis, "work/2")
    assert (finding.action is not None and finding.action.kind is ActionKind.RESTART) == (diagnosis == "slow-task")
