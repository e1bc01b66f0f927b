"""Each cause is recognised from the measurements that it makes, and from nothing less."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from heron.api.stream import Grouping
from heron.spi.health_values import (
    Action,
    ActionKind,
    ComponentShape,
    Diagnosis,
    Measurement,
    Measurements,
    Subject,
    Subscription,
    TopologyShape,
)
from heron_health_manager.diagnosing.detectors import DETECTORS
from heron_health_manager.diagnosing.diagnosers import CAUSES
from heron_health_manager.diagnosing.resolvers import RESOLVERS

WORK = ComponentShape("work", "bolt", {2: 1, 3: 1, 4: 2, 5: 2}, (Subscription("source", "default"),), groups=1024)
SHAPE = TopologyShape("words", (ComponentShape("source", "spout", {1: 1}), WORK))
SOURCE = Subject("source"), Subject("source", 1)
CONTAINER = ({"host-pressure-share": 0.0, "host-steal-share": 0.0, "memory-share": 0.0, "silent-s": 0.0},)
TASK = (
    "cpu-wait-share",
    "blocked-share",
    "gc-share",
    "restarts",
    "recent-restarts",
    "pressure-share",
    "still-s",
    "came-bytes",
)
HEALTHY = {
    "useful-share": 0.6,
    "rate-in": 100.0,
    "routed": 100.0,
    "true-rate": 166.0,
    "queue-bytes": 1000.0,
    "obstructed-share": 0.0,
}
IDLE = {"useful-share": 0.0, "rate-in": 0.0, "true-rate": None, "life-rate": 166.0}


def measured(
    tasks: Mapping[int, Mapping[str, float | None]] | None = None, containers: dict[int, dict[str, float]] | None = None
) -> Measurements:
    """Measurements of healthy tasks, with these in their place; and those of containers."""
    found = [
        Measurement(name, Subject("work", task), value)
        for task in WORK.tasks
        for name, value in {**HEALTHY, **(tasks or {}).get(task, {})}.items()
        if value is not None
    ]
    found += [
        Measurement(name, Subject(container_id=container), value)
        for container, values in (containers or {}).items()
        for name, value in values.items()
    ]
    return Measurements(SHAPE, found)


def also(before: Measurements, *more: Measurement) -> Measurements:
    """Those measurements, and some more."""
    names = {*HEALTHY, *(name for values in CONTAINER for name in values), *TASK}
    kept = [each for name in sorted(names) for each in before.of(name)]
    return Measurements(SHAPE, [*kept, *more])


def hot(key_share: float, group_share: float) -> Measurements:
    """Task 3 has four times the input of the others, and these shares of it are in one key and in one key group."""
    subject = Subject("work", 3)
    return also(
        measured({3: {"routed": 400.0, "useful-share": 0.98}}),
        Measurement("hot-key-share", subject, key_share, "customer 7"),
        Measurement("hot-group-share", subject, group_share, "17"),
    )


def stalled(backlog: float, **task: float) -> Measurements:
    """A source with a backlog whose only task has emitted nothing for 12 s."""
    component, subject = SOURCE
    of_task = {"still-s": 12.0, "obstructed-share": 0.0, "paused-share": 0.0} | {
        name.replace("_", "-"): value for name, value in task.items()
    }
    more = [Measurement(name, subject, value) for name, value in of_task.items()]
    return also(measured(), Measurement("backlog", component, backlog), *more)


def crossing(far: float, near: float, late: float = 0.0, **task: float) -> Measurements:
    """Bytes for task 4, in container 2, wait in container 1 and in its own."""
    subject = Subject("work", 4)
    before = measured({4: {name.replace("_", "-"): value for name, value in task.items()}})
    return also(
        before,
        Measurement("far-bytes", subject, far, "1"),
        Measurement("near-bytes", subject, near),
        Measurement("stmgr-late-share", Subject(container_id=2), late),
    )


def diagnosed(measurements: Measurements) -> list[Diagnosis]:
    symptoms = [each for detector in DETECTORS for each in detector.detect(measurements)]
    return [each for cause in CAUSES for each in cause.diagnose(symptoms, measurements)]


def names(measurements: Measurements) -> list[tuple[str, str]]:
    return [(each.name, str(each.subject)) for each in diagnosed(measurements)]


def all_tasks(**values: float) -> dict[int, dict[str, float]]:
    return dict.fromkeys(WORK.tasks, values)


def uneven(longest_s: float) -> dict[str, float]:
    """A busy task that takes 20 ms for a tuple, and at most that long for 99 of 100 tuples."""
    return {"true-rate": 50.0, "useful-share": 1.0, "execute-p99-s": longest_s}


def debugged(before: Measurements) -> Measurements:
    """A debugger is attached to task 4."""
    kept = [each for name in (*HEALTHY, *TASK, "execute-p99-s") for each in before.of(name)]
    return Measurements(SHAPE, [*kept, Measurement("debugged-s", Subject("work", 4), 35.0, "gdb (process 7)")])


WAITING = {"cpu-wait-share": 0.5, "useful-share": 0.95, "true-rate": 60.0}

CASES: dict[str, tuple[Measurements, list[tuple[str, str]]]] = {
    "healthy": (measured(), []),
    "busy everywhere": (measured(all_tasks(**{"useful-share": 1.0, "pressure-share": 1.0})), []),
    "a hot key": (
        measured({3: {"routed": 400.0, "useful-share": 0.98}}),
        [("data-skew", "work/3")],
    ),
    "skew that hurts nobody": (measured({3: {"routed": 400.0, "useful-share": 0.7}}), []),
    "a task that catches up executes more than is routed to it": (
        measured({3: {"rate-in": 400.0, "useful-share": 0.98}}),
        [],
    ),
    "a slow task works off its backlog, and the others idle": (
        measured(
            {
                2: {"rate-in": 10.0, "true-rate": 10.0, "useful-share": 1.0, "pressure-share": 1.0},
                **dict.fromkeys((3, 4, 5), IDLE),
            }
        ),
        [("slow-task", "work/2")],
    ),
    "a slow task that now and then waits for a processor": (
        measured({4: {"true-rate": 50.0, "useful-share": 1.0, "cpu-wait-share": 0.2, "pressure-share": 1.0}}),
        [("slow-task", "work/4")],
    ),
    "a slow key": (
        measured({**all_tasks(**{"execute-p99-s": 0.01}), 4: uneven(0.2)}),
        [("slow-key", "work/4")],
    ),
    "a debugger at a few tuples of a task with keys": (
        debugged(measured({**all_tasks(**{"execute-p99-s": 0.01}), 4: uneven(3.0)})),
        [("debugged-task", "work/4")],
    ),
    "a task that stands in a debugger": (
        debugged(measured({4: {"queue-bytes": 5e4, "still-s": 12.0, "useful-share": 1.0}})),
        [("debugged-task", "work/4")],
    ),
    "a debugger that nobody waits for": (debugged(measured()), []),
    "a slow task with keys": (
        measured({**all_tasks(**{"execute-p99-s": 0.01}), 4: uneven(0.03)}),
        [("slow-task", "work/4")],
    ),
    "a slow task whose siblings have slow tuples too": (
        measured({**all_tasks(**{"execute-p99-s": 0.1}), 4: uneven(0.2)}),
        [("slow-task", "work/4")],
    ),
    "a straggler": (
        measured({4: {"true-rate": 50.0, "useful-share": 1.0}}),
        [("slow-task", "work/4")],
    ),
    "a straggler with time to spare": (measured({4: {"true-rate": 50.0, "useful-share": 0.5}}), []),
    "a busy host": (
        measured({4: WAITING, 5: WAITING}, {1: {"host-pressure-share": 0.2}, 2: {"host-pressure-share": 0.9}}),
        [("slow-host", "container 2")],
    ),
    "the only host is busy": (
        measured({4: WAITING, 5: WAITING}, {2: {"host-pressure-share": 0.9}}),
        [("slow-host", "container 2")],
    ),
    "a hypervisor": (
        measured({4: WAITING, 5: WAITING}, {2: {"host-steal-share": 0.4}}),
        [("slow-host", "container 2")],
    ),
    "a limit of processors": (
        measured(
            {4: WAITING},
            {
                1: {"host-pressure-share": 0.2, "container-throttled-share": 0.0},
                2: {"host-pressure-share": 0.2, "container-throttled-share": 0.7},
            },
        ),
        [("slow-host", "container 2")],
    ),
    "one of two hypervisors": (
        measured(
            {4: WAITING},
            {
                1: {"host-pressure-share": 0.9, "host-steal-share": 0.0},
                2: {"host-pressure-share": 0.2, "host-steal-share": 0.4},
            },
        ),
        [("slow-host", "container 2")],
    ),
    "two slow hypervisors": (
        measured(
            {4: WAITING},
            {
                1: {"host-pressure-share": 0.0, "host-steal-share": 0.4},
                2: {"host-pressure-share": 0.2, "host-steal-share": 0.4},
            },
        ),
        [("slow-host", "container 2")],
    ),
    "a busy host whose tasks do not wait": (measured(None, {2: {"host-pressure-share": 0.9}}), []),
    "a slow service": (
        measured(all_tasks(**{"useful-share": 0.99, "blocked-share": 0.9})),
        [("slow-external-service", "work")],
    ),
    "one blocked task": (
        measured({2: {"useful-share": 0.99, "blocked-share": 0.9, "true-rate": 20.0}}),
        [("slow-task", "work/2")],
    ),
    "a stuck task": (
        measured({2: {"rate-in": 0.0, "true-rate": 0.0, "useful-share": 0.0, "still-s": 12.0}}),
        [("stuck-task", "work/2")],
    ),
    "a task without input": (measured({2: {"rate-in": 0.0, "queue-bytes": 0.0}}), []),
    "a task that its consumers hold": (measured({2: {"rate-in": 0.0, "obstructed-share": 1.0}}), []),
    "a crash loop": (
        measured({2: {"recent-restarts": 4.0, "rate-in": 0.0}}),
        [("restart-loop", "work/2")],
    ),
    "two restarts": (measured({2: {"recent-restarts": 2.0}}), []),
    "memory": (measured(None, {1: {"memory-share": 0.95}}), [("memory-near-limit", "container 1")]),
    "a lost container": (measured(None, {2: {"silent-s": 5.0}}), [("unreachable-peer", "container 2")]),
    "a busy stream manager of a host with processors to spare": (
        measured(None, {2: {"stmgr-late-share": 0.5, "host-pressure-share": 0.1}}),
        [("slow-stream-manager", "container 2")],
    ),
    "a slow stream manager": (
        measured(None, {2: {"stmgr-late-share": 0.5}}),
        [("slow-stream-manager", "container 2")],
    ),
    "garbage": (measured({5: {"gc-share": 0.4}}), [("garbage", "work/5")]),
    "pressure without a cause": (
        measured({5: {"pressure-share": 0.9}}),
        [("unexplained-back-pressure", "the topology")],
    ),
    "pressure of a task that works and waits for a processor": (
        measured({5: {"pressure-share": 0.9, "useful-share": 1.0, "cpu-wait-share": 0.2}}),
        [],
    ),
    "a hot key by name": (hot(0.7, 0.75), [("hot-key", "work/3")]),
    "a hot key group": (hot(0.1, 0.75), [("hot-key-group", "work/3")]),
    "skew of many keys": (hot(0.1, 0.12), [("data-skew", "work/3")]),
    "a stopped process": (
        measured({2: {"still-s": 11.0, "queue-bytes": 0.0, "came-bytes": 500.0}}),
        [("stuck-task", "work/2")],
    ),
    "a task that starts again": (measured({2: {"restarts": 1.0, "still-s": 12.0}}), []),
    "calls that take longer than before": (
        measured(all_tasks(**{"useful-share": 0.9, "blocked-share": 0.8, "blocked-times": 2.0})),
        [("slow-external-service", "work")],
    ),
    "calls that always take long": (
        measured(all_tasks(**{"useful-share": 0.99, "blocked-share": 0.9, "blocked-times": 1.1})),
        [],
    ),
    "calls that take longer, with time to spare": (
        measured(all_tasks(**{"useful-share": 0.7, "blocked-share": 0.6, "blocked-times": 2.0})),
        [],
    ),
    "one task that waits longer": (
        measured({2: {"useful-share": 0.99, "blocked-share": 0.9, "blocked-times": 3.0, "true-rate": 20.0}}),
        [("slow-task", "work/2")],
    ),
    "a long call": (measured({2: {"still-s": 9.0}}), []),
    "a long call without further input": (measured({2: {"still-s": 12.0, "queue-bytes": 0.0, "came-bytes": 0.0}}), []),
    "a task that waits for a processor with time to spare": (
        measured({4: {"cpu-wait-share": 0.5}}, {2: {"host-pressure-share": 0.9}}),
        [],
    ),
    "a busy machine makes calls longer": (
        measured(all_tasks(**{"useful-share": 0.95, "blocked-share": 0.7, "cpu-wait-share": 0.15})),
        [],
    ),
    "a source that stalls": (stalled(500.0), [("stalled-source", "source")]),
    "a source without tuples": (stalled(0.0), []),
    "a source that is held": (stalled(500.0, obstructed_share=0.9), []),
    "a paused topology": (stalled(500.0, paused_share=1.0), []),
    "a source that has just emitted": (stalled(500.0, still_s=2.0), []),
    "a leak": (
        measured({2: {"memory-trend": 5e6}, 3: {"memory-trend": 1e5}, 4: {"memory-trend": 0.0}}),
        [("memory-growth", "work/2")],
    ),
    "windows that fill": (measured(all_tasks(**{"memory-trend": 5e6})), []),
    "windows that fill the host": (
        measured(all_tasks(**{"memory-trend": 5e6}), {1: {"memory-free-bytes": 1e9}}),
        [("memory-growth", "work/2"), ("memory-growth", "work/3")],
    ),
    "a slow link": (crossing(1e6, 1e3), [("slow-link", "container 2")]),
    "a slow link to a late stream manager": (
        crossing(1e6, 1e3, late=0.5),
        [("slow-stream-manager", "container 2")],
    ),
    "data that waits for a busy task": (crossing(1e6, 1e3, useful_share=1.0), []),
    "data that waits in both containers": (crossing(1e6, 9e5), []),
    "a task that hangs on a busy host": (
        measured({5: {"still-s": 12.0, **WAITING}}, {2: {"host-pressure-share": 0.9}}),
        [("stuck-task", "work/5")],
    ),
    "garbage on a busy host": (
        measured({5: {"gc-share": 0.4, **WAITING}}, {2: {"host-pressure-share": 0.9}}),
        [("garbage", "work/5")],
    ),
    "garbage makes a task slow": (
        measured({5: {"gc-share": 0.4, "true-rate": 60.0, "useful-share": 1.0}}),
        [("garbage", "work/5")],
    ),
    "two causes at once": (
        measured({2: {"recent-restarts": 4.0}, 5: {"gc-share": 0.4}}),
        [("restart-loop", "work/2"), ("garbage", "work/5")],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_finds_the_cause_and_no_other(case: str) -> None:
    """A wrong diagnosis would cost a restart that helps nobody."""
    measurements, expected = CASES[case]
    assert names(measurements) == expected


def test_the_evidence_has_the_numbers() -> None:
    """People must be able to check a diagnosis."""
    (slow,) = diagnosed(CASES["a straggler"][0])
    assert slow.evidence == ("work/4 can do 50 tuples/s, 30% of the median of the other tasks",)
    (debugger,) = diagnosed(CASES["a task that stands in a debugger"][0])
    assert debugger.evidence == ("gdb (process 7) has been attached to work/4 for 35 s",)
    (key,) = diagnosed(CASES["a hot key by name"][0])
    assert key.evidence[1] == "70% of its input has the key customer 7"
    (host,) = diagnosed(CASES["a busy host"][0])
    assert host.evidence == (
        "2 of its tasks wait for a processor, up to 50% of the time",
        "threads of the host wait for a processor 90% of the time",
    )


def action_against(case: str) -> Action:
    measurements = CASES[case][0]
    (diagnosis,) = diagnosed(measurements)
    return next(action for each in RESOLVERS if (action := each.resolve(diagnosis, measurements)) is not None)


@pytest.mark.parametrize(
    ("case", "kind", "command"),
    [
        ("a straggler", ActionKind.RESTART, "heron restart words 2"),
        ("a stuck task", ActionKind.RESTART, "heron restart words 1"),
        ("a slow key", ActionKind.ADVISE, ""),
        ("a task that stands in a debugger", ActionKind.ADVISE, ""),
        ("a busy host", ActionKind.RESTART, "heron restart words 2"),
        ("the only host is busy", ActionKind.ADVISE, ""),
        ("a limit of processors", ActionKind.ADVISE, ""),
        ("one of two hypervisors", ActionKind.RESTART, "heron restart words 2"),
        ("two slow hypervisors", ActionKind.ADVISE, ""),
        ("a hot key", ActionKind.REBALANCE, "heron update words --rebalance work"),
        ("a slow service", ActionKind.ADVISE, ""),
        ("a hot key by name", ActionKind.ADVISE, ""),
        ("a hot key group", ActionKind.REBALANCE, "heron update words --rebalance work"),
        ("a source that stalls", ActionKind.ADVISE, ""),
        ("a leak", ActionKind.ADVISE, "heron memory words 2"),
        ("a slow link", ActionKind.ADVISE, ""),
        ("a crash loop", ActionKind.ADVISE, ""),
        ("garbage", ActionKind.ADVISE, ""),
        ("memory", ActionKind.ADVISE, ""),
        ("a lost container", ActionKind.ADVISE, ""),
        ("a slow stream manager", ActionKind.ADVISE, ""),
        (
            "a busy stream manager of a host with processors to spare",
            ActionKind.UPDATE,
            "heron update words --container-number 3",
        ),
        ("pressure without a cause", ActionKind.ADVISE, ""),
    ],
)
def test_every_cause_has_a_remedy(case: str, kind: ActionKind, command: str) -> None:
    """The command does by hand what the health manager would do."""
    action = action_against(case)
    assert (action.kind, action.command) == (kind, command)
    about = action.container_id or action.component or action.containers
    assert str(diagnosed(CASES[case][0])[0].subject) in action.text or about


@pytest.mark.parametrize("case", ["a busy host", "one of two hypervisors"])
def test_a_task_that_got_away_from_a_slow_host_waits_no_more(case: str) -> None:
    """Whatever makes a host slow, the wait of the task shows whether the restart has led elsewhere."""
    expected, (measurements, _) = action_against(case).expected, CASES[case]
    assert expected is not None
    assert (expected.measurement, expected.subject) == ("cpu-wait-share", Subject("work", 4))
    assert not expected.holds(measurements.value(expected.measurement, expected.subject) or 0.0), "before the restart"
    assert expected.holds(0.1)


def test_skew_without_keys_is_not_rebalanced() -> None:
    """`heron update --rebalance` would be refused: without a fields grouping there are no key groups."""
    shape = replace(SHAPE, components=(SHAPE.components[0], replace(WORK, groups=None)))
    measurements = Measurements(shape, CASES["a hot key"][0].of("routed"))
    found = Diagnosis("data-skew", Subject("work", 3), 0.9, ("work/3 gets 2.3 times the mean",))
    action = next(each for one in RESOLVERS if (each := one.resolve(found, measurements)) is not None)
    assert (action.kind, action.command) == (ActionKind.ADVISE, "")
    assert action.text == "change the grouping of work, which sends work/3 more data than the other tasks"


def test_advice_has_the_line_to_change() -> None:
    """With the value, where it follows from a measurement."""
    assert action_against("a hot key by name").text.endswith(
        "in the inputs of work, write Grouping.PARTIAL_KEY(...) instead of Grouping.fields(...)"
    )
    assert hasattr(Grouping, "PARTIAL_KEY")
    full = measured(None, {1: {"memory-share": 0.95, "memory-limit-bytes": 2e9}})
    (diagnosis,) = diagnosed(full)
    action = next(action for each in RESOLVERS if (action := each.resolve(diagnosis, full)) is not None)
    line = 'set_config({"topology.container.ram": 3000000000})'
    assert action.text == f"keep less state in container 1, or submit with more memory: {line}"
    assert action_against("memory").text.endswith('set_config({"topology.container.ram": BYTES})')


def test_a_restarted_task_has_recovered_when_it_executes_again() -> None:
    """What waits for it need not be gone: the load may be more than it can do."""
    expected = action_against("a stuck task").expected
    assert expected is not None
    assert expected.measurement == "rate-in"
    assert not expected.holds(0.0)
    assert expected.holds(5.0)
