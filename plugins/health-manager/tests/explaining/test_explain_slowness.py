"""A slow topology in words: from the source that is held up to the cause, and what the numbers rule out."""

from __future__ import annotations

from dataclasses import replace

import pytest
from msgspec import structs

from heron.ipc.documents.status import Culprit, LongCallStatus, TopologyStatus, Unreached
from heron.spi.health_values import (
    Action,
    ActionKind,
    Diagnosis,
    Measurement,
    Measurements,
    Observation,
    Sample,
    Subject,
    TopologyShape,
)
from heron_health_manager.diagnosing.diagnosers import EXPLAINED
from heron_health_manager.diagnosing.policy_round import Finding, Round, run_round
from heron_health_manager.ds2_policy import Ds2Policy
from heron_health_manager.explaining.explain import explain
from heron_health_manager.explaining.explanation_text import MOST_LINES, explanation_lines
from heron_health_manager.explaining.facts import Facts, PastEvent
from heron_health_manager.sizing.provisioning import UNDER
from heron_testing.contracts.health import busy_topology

NOW_S = 1_795_612_800.0  # 2026-11-25 13:20:00 UTC
STATUS = TopologyStatus("busy", "busy-1", "running", NOW_S - 900.0)
POLICY = Ds2Policy.open({"wanted_utilisation": 1.0, "most_utilisation": 1.0})


def found(window: list[Observation]) -> Round:
    result = run_round(POLICY, window)
    assert result is not None
    return result


def facts(given: Round | None, **changes: object) -> Facts:
    made = Facts("busy", NOW_S, NOW_S - 600.0, status=STATUS, events=(), found=given)
    return replace(made, **changes)  # type: ignore[arg-type]  # a test names fields of Facts


def with_finding(name: str, subject: Subject, *measured: Measurement, confidence: float = 0.9) -> Round:
    """The busy topology with exactly this finding, and some measurements in place of its own."""
    shape = busy_topology()[-1].shape
    before = found(busy_topology()).measurements
    kept = [each for key in ("source-rate", "target-rate", "useful-share") for each in before.of(key)]
    finding = Finding(Diagnosis(name, subject, confidence, ("the evidence",)), Action(ActionKind.ADVISE, "do it"))
    return Round(Measurements(shape, (*kept, *measured)), (), (finding,), ())


def lines_of(given: Facts) -> list[str]:
    lines = explanation_lines(explain(given))
    assert len(lines) <= MOST_LINES
    return lines


def test_a_component_that_is_too_small_holds_its_source_up() -> None:
    """Symptom, cause, numbers, exclusions and the command."""
    culprit = Culprit(2, "work", 3, NOW_S - 120.0)
    lines = lines_of(facts(found(busy_topology()), status=replace(STATUS, backpressure=(culprit,))))
    assert lines == [
        "busy: source emits 1,000 tuples/s, and could emit 2,000",
        "  since      13:18:00 UTC, for 2 min",
        "  why        work has too few tasks for its load",
        "             work has to do 2,000 tuples/s with 4 tasks, 500 each: 200% of what they can do",
        "  ruled out  a busy host (tasks wait for a processor 0%); a slow service (blocked 0%); skew (at most 1.0 "
        "times the mean); a slow task (the slowest has 100% of the fastest)",
        "  to do      change the number of tasks: work 4 -> 8",
        "             heron update busy --component-parallelism work:8",
    ]


def test_what_began_at_an_unknown_time_says_for_how_long_it_was_observed() -> None:
    """Without back pressure nothing knows the begin; a reader still learns how old the answer is at least."""
    given = replace(facts(with_finding("slow-task", Subject("work", 2))), observed_s=15.0)
    assert lines_of(given)[1] == "  since      not known; observed for 15 s"
    slow = given.found
    assert slow is not None
    service = Finding(Diagnosis("slow-external-service", Subject("work"), 0.9, ("the evidence",)), None)
    lines = lines_of(replace(given, found=replace(slow, findings=(*slow.findings, service))))
    assert lines[0] == "busy: source emits 1,000 tuples/s, and could emit 2,000, observed for 15 s"
    assert "  to do      heron profile busy 2" in lines, "it shows the line that waits"


def test_what_does_not_hold_is_not_ruled_out() -> None:
    """A cause that was not measured, or that is near, is left out."""
    tasks = [Measurement("routed", Subject("work", task), 100.0 if task == 2 else 1.0) for task in (2, 3, 4, 5)]
    (problem,) = explain(facts(with_finding("slow-task", Subject("work", 2), *tasks))).problems
    assert problem.ruled_out == ()
    service = [Measurement("blocked-share", Subject("work", 3), 0.1), Measurement("gc-share", Subject("work", 2), 0.3)]
    (problem,) = explain(facts(with_finding("slow-task", Subject("work", 2), *service))).problems
    assert problem.ruled_out == ("a slow service (blocked 10%)",)
    (problem,) = explain(facts(with_finding("slow-external-service", Subject("work"), *service))).problems
    assert problem.ruled_out == ()


def test_consequences_of_a_cause_are_left_out() -> None:
    """More tasks on a slow host do not help: only the host is told."""
    slow = with_finding("slow-host", Subject(container_id=3))
    doubtful = Finding(Diagnosis("under-provisioned", Subject("work"), 0.4, ("too few",)), None)
    answer = explain(facts(replace(slow, findings=(*slow.findings, doubtful))))
    assert [each.kind for each in answer.problems] == ["slow-host"]
    alone = explain(facts(replace(slow, findings=(doubtful,))))
    assert [each.kind for each in alone.problems] == ["under-provisioned"]


def test_a_death_explains_what_waits_for_the_process() -> None:
    """The task is stuck because it dies; its source suffers from it."""
    dying = PastEvent(NOW_S - 5.0, "process-died", "work-2", 3, {"reason": "exit code 7"})
    (problem,) = explain(facts(with_finding("stuck-task", Subject("work", 2)), events=(dying,))).problems
    assert problem.what == "work/2 was restarted once; source emits 1,000 tuples/s, and could emit 2,000"
    other = explain(facts(with_finding("stuck-task", Subject("work", 3)), events=(dying,)))
    assert [each.kind for each in other.problems] == ["restarts", "stuck-task"]


def test_two_causes_at_once_are_both_told() -> None:
    """A slow service in one component, and kills in another one."""
    dying = PastEvent(NOW_S - 5.0, "process-died", "source-1", 1, {"reason": "killed by SIGTERM (not by its executor)"})
    answer = explain(facts(with_finding("slow-external-service", Subject("work")), events=(dying,)))
    assert sorted(each.kind for each in answer.problems) == ["restarts", "slow-external-service"]
    assert len(explanation_lines(answer)) <= MOST_LINES


def test_a_call_that_does_not_return_says_where_it_is() -> None:
    """And since when."""
    call = LongCallStatus(2, "work", "Work.process", "work.py, line 3", NOW_S - 40.0)
    given = facts(with_finding("stuck-task", Subject("work", 2)), status=replace(STATUS, long_calls=(call,)))
    (problem,) = explain(given).problems
    assert problem.since_s == NOW_S - 40.0
    assert problem.why[-1] == "it has been in one call of Work.process for 40 s, at work.py, line 3"
    assert problem.command == "heron stack busy 2"


def test_a_lost_container_is_silent_since_then() -> None:
    """Its peers count the seconds."""
    given = facts(
        with_finding("unreachable-peer", Subject(container_id=2)),
        status=replace(STATUS, unreached=(Unreached(2, 1, 30.0), Unreached(2, 3, 31.0))),
    )
    (problem,) = explain(given).problems
    assert problem.since_s == NOW_S - 31.0


def test_spare_tasks_are_told_only_where_nothing_suffers() -> None:
    """They cost, but nobody waits because of them."""
    spare = with_finding("over-provisioned", Subject("work"))
    (problem,) = explain(facts(spare)).problems
    assert problem.what == "nothing suffers, but work has more tasks than its load needs"
    dying = PastEvent(NOW_S - 5.0, "process-died", "source-1", 1, {"reason": "exit code 1"})
    assert [each.kind for each in explain(facts(spare, events=(dying,))).problems] == ["restarts"]


def test_contradictory_metrics_show_nothing() -> None:
    """A task cannot be useful 340 % of its time, nor blocked so; nothing rests on it, and the value is named."""
    seen = [replace(each, samples=tuple(map(impossible, each.samples))) for each in busy_topology()]
    answer = explain(facts(found(seen)))
    assert answer.problems == ()
    assert answer.unknown == ("left out: contradictory metrics: useful-share of work/2 is 341% and 1 other value",)


def impossible(sample: Sample) -> Sample:
    """The time that task 2 is blocked in its code grows by 3.4 s each second."""
    blocked = sample.task_id == 2 and sample.labels.get("use") == "user-cpu"
    return structs.replace(sample, labels={"use": "user-blocked"}, rate_per_s=3.4) if blocked else sample


def test_a_plan_in_change_is_not_judged() -> None:
    """Its rates belong to two plans."""
    changing = [replace(each, shape=replace(each.shape, changing=True)) for each in busy_topology()]
    assert lines_of(facts(found(changing)))[0].startswith("busy is being updated, so rates say little")


def test_empty_metrics_are_not_called_healthy() -> None:
    """Nothing is known of the load."""
    silent = [replace(each, samples=(), culprits=frozenset()) for each in busy_topology()]
    assert lines_of(facts(found(silent)))[0] == "busy: nothing suffers that is known; its tasks have sent no metrics"


OTHERS = (UNDER, "memory-growth", "memory-near-limit", "restart-loop", "stalled-source", "unreachable-peer")


@pytest.mark.parametrize("name", sorted({*EXPLAINED, *OTHERS}))
def test_every_diagnosis_of_ours_is_told_in_words(name: str) -> None:
    """Its name alone would say little."""
    (problem,) = explain(facts(with_finding(name, Subject("work", 2)))).problems
    assert name not in (problem.what, *problem.why)
    assert f"{name} of" not in " ".join((problem.what, *problem.why))


def test_an_unknown_diagnosis_of_a_policy_is_told_by_its_name() -> None:
    """Policies of third parties have their own."""
    (problem,) = explain(facts(with_finding("cold-cache", Subject("other")))).problems
    assert problem.what == "cold-cache of other"


def test_an_ended_topology_has_no_present_load() -> None:
    """Even if a round is given."""
    ended = replace(STATUS, state="finished", ended_at_s=NOW_S)
    assert explain(facts(found(busy_topology()), status=ended, running=False)).problems == ()


def test_parts_that_failed_are_named() -> None:
    """What they would have found is not known."""
    broken = replace(found(busy_topology()), findings=(), failed=("part Sensor failed: ValueError: no",))
    assert explain(facts(broken)).unknown == ("left out: part Sensor failed: ValueError: no",)


def test_a_topology_without_a_plan_is_no_error() -> None:
    """It is starting."""
    empty = Round(Measurements(TopologyShape("busy", ())), (), (), ())
    assert explain(facts(empty)).problems == ()
