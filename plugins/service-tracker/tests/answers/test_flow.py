"""The graph, the rows of tasks and the sentences about trouble, made from what was observed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from heron.ipc.documents.status import (
    ComponentStatus,
    Culprit,
    LeaderStatus,
    LongCallStatus,
    ProcessStatus,
    SinkOutage,
    TaskStatus,
    Unreached,
)
from heron_cli.client import MetricsRow, TopologyStatus
from heron_service_tracker.answers.answers import TroubleItem
from heron_service_tracker.answers.flow import flow_edges, flow_nodes, task_rows
from heron_service_tracker.answers.trouble import troubles
from heron_service_tracker.observed.observed import ObservedTopology
from heron_service_tracker.watches.observations import Observations
from heron_testing.fake_clock import FakeClock

Seen = Callable[..., ObservedTopology]


def row(task_id: int, name: str, rate: float | None = None, value: float = 0.0, **labels: str) -> MetricsRow:
    """A metric of a task of the bolt `count` (2) or the spout `lines` (1)."""
    component = "lines" if task_id == 1 else "count"
    return MetricsRow(component, task_id, f"{component}-{task_id}", name, "counter", "", value, labels, rate)


@pytest.fixture
def seen(observations: Observations, make_status: Callable[..., TopologyStatus]) -> Seen:
    """Puts a status and metrics, and returns what the tracker then knows."""

    def put(*rows: MetricsRow, **changes: object) -> ObservedTopology:
        observations.put_status("near", make_status(**changes), rows)
        return observations.topology("near", "words")

    return put


def test_an_edge_has_what_its_target_executes_from_its_source(seen: Seen) -> None:
    """Two subscriptions of one bolt flow differently, so the total of the bolt would be wrong for both."""
    flows = [
        row(2, "execute-count", 7.0, component="lines", stream="default"),
        row(3, "execute-count", 2.0, component="lines", stream="default"),
        row(2, "execute-count", 90.0, component="lines", stream="other"),
    ]
    (edge,) = flow_edges(seen(*flows))
    assert (edge.source, edge.target, edge.stream, edge.grouping) == ("lines", "count", "default", "fields")
    assert edge.rate_per_s == 9.0


def test_a_rate_that_was_not_measured_is_unknown_and_not_zero(seen: Seen) -> None:
    """Zero would say that nothing flows."""
    found = seen(row(2, "execute-count", None, component="lines", stream="default"))
    assert [each.rate_per_s for each in flow_edges(found)] == [None]
    assert [each.rate_per_s for each in task_rows(found)] == [None, None]


def test_busy_is_the_time_of_work_where_tasks_account_for_it(seen: Seen) -> None:
    """Waits for input are no work; a blocked call of the author's code is."""
    uses = {"user-cpu": 0.2, "user-blocked": 0.5, "engine": 0.1, "input": 0.2}
    rows = [row(2, "task-time-s", share, use=use) for use, share in uses.items()]
    found = seen(*rows, row(2, "cpu-seconds", 0.3), row(1, "cpu-seconds", 0.4))
    spout, bolt = task_rows(found)
    assert (spout.kind, bolt.kind) == ("spout", "bolt")
    assert (bolt.busy, bolt.busy_from, bolt.cores) == (0.8, "task-time", 0.3)
    assert (spout.busy, spout.busy_from) == (0.4, "processor")
    lines, count = flow_nodes(found, {"count": 3})
    assert (count.busy, count.busy_from, count.errors) == (0.8, "task-time", 3)
    assert (bolt.time, count.time, spout.time, lines.time) == (uses, uses, {}, {})
    assert (lines.busy, lines.busy_from, lines.errors) == (0.4, "processor", 0)


def test_one_busy_task_of_several_is_seen(seen: Seen) -> None:
    """The mean hides a straggler."""
    tasks = tuple(TaskStatus(number, "count", 1, "running", 1) for number in (2, 3))
    shares = [row(2, "task-time-s", 1.0, use="user-cpu"), row(3, "task-time-s", 0.2, use="user-cpu")]
    (count,) = [each for each in flow_nodes(seen(*shares, tasks=tasks), {}) if each.name == "count"]
    assert (count.busy, count.busy_most) == (0.6, 1.0)
    assert count.time == {"user-cpu": 0.6}


def test_the_memory_of_a_component_is_beside_that_of_the_other_tasks(seen: Seen) -> None:
    """A task that leaks is seen before it dies, also where its component has no other task."""
    tasks = (TaskStatus(1, "lines", 1, "running", 1), *(TaskStatus(n, "count", 1, "running", 1) for n in (2, 3)))
    sizes = {1: 30.0, 2: 84.0, 3: 33.0}
    lines, count = flow_nodes(
        seen(*(row(n, "resident-bytes", value=size) for n, size in sizes.items()), tasks=tasks), {}
    )
    assert (count.resident_bytes, count.resident_bytes_most, count.resident_bytes_others) == (117.0, 84.0, 30.0)
    assert (lines.resident_bytes, lines.resident_bytes_most, lines.resident_bytes_others) == (30.0, 30.0, 33.0)
    alone, unmeasured = flow_nodes(seen(row(1, "resident-bytes", value=30.0)), {})
    assert (alone.resident_bytes, alone.resident_bytes_others) == (30.0, None)
    assert (unmeasured.resident_bytes, unmeasured.resident_bytes_most) == (None, None)


def test_the_culprit_and_the_spouts_that_it_holds_back_are_marked(seen: Seen) -> None:
    """The slow task is the bolt; the spout only waits."""
    found = seen(backpressure=(Culprit(2, "count", 1, 5.0, "the task is slow"),))
    lines, count = flow_nodes(found, {})
    assert (count.culprits, count.causes, count.held_back_by) == ((2,), ("the task is slow",), ())
    assert (lines.culprits, lines.held_back_by) == ((), ("count",))
    assert [each.culprit for each in task_rows(found)] == ["", "the task is slow"]


def test_a_row_has_the_place_and_the_troubles_of_its_task(seen: Seen) -> None:
    """One row answers where the task is, and what is wrong with it."""
    tasks = (TaskStatus(2, "count", 4, "restarting", 1, 3, "ValueError: bad"),)
    processes = (ProcessStatus(4, "count-2", "restarting", 77, 1, 2, host="h9"),)
    calls = (LongCallStatus(2, "count", "process", "words.py, line 3", 9.0),)
    rows = [row(2, "in-queue-bytes", value=5.0), row(2, "resident-bytes", value=9.0)]
    (found,) = task_rows(seen(*rows, tasks=tasks, processes=processes, long_calls=calls))
    assert (found.container_id, found.host, found.pid, found.restarts) == (4, "h9", 77, 3)
    assert (found.queue_bytes, found.resident_bytes) == (5.0, 9.0)
    assert (found.last_error, found.long_call) == ("ValueError: bad", "process, at words.py, line 3")


def test_nothing_wrong_is_no_sentence(seen: Seen) -> None:
    """A list that always says something is not read."""
    assert troubles(seen()) == ()


def test_trouble_is_told_in_words_the_gravest_first(seen: Seen) -> None:
    """A person reads the first sentence; processes that are down come before those that come back."""
    found = seen(
        processes=(
            ProcessStatus(1, "lines-1", "restarting", 0, 1, 1, last_error="killed by signal 9"),
            ProcessStatus(1, "count-2", "down", 0, 1, 2, last_error="ValueError: bad"),
        ),
        backpressure=(Culprit(2, "count", 1, 5.0, "the task is slow"),),
        long_calls=(LongCallStatus(2, "count", "process", "words.py, line 3", 9.0),),
        unreached=(Unreached(2, 1, 12.3),),
        outages=(SinkOutage("file", 1, 60.0, "disk full"),),
    )
    told = troubles(found)
    assert [each.text for each in told] == [
        "count-2 in container 1 is down: ValueError: bad",
        "count/2 holds its spouts back: the task is slow",
        "count/2 has been in one call of process for long, at words.py, line 3",
        "container 2 has not been reached for 12 s",
        "lines-1 in container 1 is restarting: killed by signal 9",
        "the sink file of container 1 has delivered nothing for 60 s: disk full",
    ]
    assert [(each.kind, each.component, each.task_id, each.container_id) for each in told] == [
        ("process-down", "count", 2, 1),
        ("back-pressure", "count", 2, 0),
        ("long-call", "count", 2, 0),
        ("container-unreached", "", 0, 2),
        ("process-restarting", "lines", 1, 1),
        ("sink-outage", "", 0, 1),
    ]


def test_a_task_that_does_not_keep_up_is_told_before_back_pressure_begins(seen: Seen) -> None:
    """Buffers fill for minutes while tuples wait. A short queue, and a task with time to spare, are well."""

    def told(queue_bytes: int, *shares: float, **changes: object) -> list[tuple[str, str, int]]:
        bolt = ComponentStatus("count", "bolt", len(shares), queue_bytes=queue_bytes)
        rows = [row(number, "task-time-s", share, use="user-blocked") for number, share in enumerate(shares, 2)]
        found = troubles(seen(*rows, components=(bolt,), **changes))
        return [(each.kind, each.text, each.task_id) for each in found]

    text = "count/3 does not keep up: it is busy 98% of the time, and 3.5 MiB wait for count"
    assert told(7 << 19, 0.1, 0.98) == [("behind", text, 3)]
    assert told(1 << 17, 0.98) == []
    assert told(7 << 19, 0.5) == []
    assert told(7 << 19) == []
    culprit = (Culprit(2, "count", 1, 5.0, "the task is slow"),)
    assert [kind for kind, _, _ in told(7 << 19, 0.98, backpressure=culprit)] == ["back-pressure"]


def test_a_task_that_leaks_is_told_beside_the_others_of_its_component(seen: Seen) -> None:
    """Tasks with the same code need about the same. Some MiB are no difference, and one task alone has none."""

    def told(*sizes: float) -> list[tuple[str, str, int]]:
        rows = [row(number, "resident-bytes", value=size * 2**20) for number, size in enumerate(sizes, 2)]
        return [(each.kind, each.text, each.task_id) for each in troubles(seen(*rows))]

    text = "count/3 has 84 MiB of memory, and the other tasks of count about 33 MiB"
    assert told(33.0, 84.0) == [("memory", text, 3)]
    assert told(33.0, 84.0, 32.0, 33.4) == [("memory", text, 3)]
    assert told(33.0, 60.0) == []
    assert told(5.0, 15.0) == []
    assert told(84.0) == []


def test_a_trouble_is_told_once(seen: Seen) -> None:
    """Each stream manager reports the task that it waits for; the first place counts."""
    culprits = tuple(Culprit(task_id, "count", 1, 5.0, "the task is slow") for task_id in (2, 3, 2))
    assert [each.task_id for each in troubles(seen(backpressure=culprits))] == [2, 3]


def test_failed_tuples_are_a_trouble_for_some_minutes(
    observations: Observations, clock: FakeClock, make_status: Callable[..., TopologyStatus]
) -> None:
    """A count since the start would mark the topology for ever, and so would a new leader that learns old counts."""

    def found(failed: int, epoch: int = 1, tasks: int = 1) -> tuple[str, ...]:
        bolt = ComponentStatus("count", "bolt", 1, failed=failed, reported_tasks=tasks)
        leader = LeaderStatus(0, 10, "h1", epoch, 1000.0)
        observations.put_status("near", make_status(components=(bolt,), leader=leader), None)
        told = troubles(observations.topology("near", "words"))
        assert {(each.kind, each.component) for each in told} <= {("failures", "count")}
        return tuple(each.text for each in told)

    assert found(1_000) == ()  # when they failed is not known
    assert found(1_002) == ("2 tuples of count have failed in the last 5 minutes",)
    clock.advance(120.0)
    assert found(1_005) == ("5 tuples of count have failed in the last 5 minutes",)
    clock.advance(200.0)
    assert found(1_005) == ("3 tuples of count have failed in the last 5 minutes",)
    clock.advance(300.0)
    assert found(1_005) == ()
    assert found(2_000, epoch=2) == ()
    assert found(9_000, epoch=2, tasks=2) == ()


def test_an_ended_topology_has_only_the_reason_of_its_end(
    observations: Observations, make_entry: Callable[..., object], make_status: Callable[..., TopologyStatus]
) -> None:
    """Its processes are gone on purpose, and its tasks hold nothing back any more."""
    observations.put_list("near", [make_entry(state="failed")])  # type: ignore[list-item]
    down = (ProcessStatus(1, "count-2", "down", 0, 1, 2),)
    observations.put_status("near", make_status(state="failed", error="count/2 raised", processes=down), None)
    assert troubles(observations.topology("near", "words")) == (TroubleItem("run", "it failed: count/2 raised"),)


def test_an_ended_topology_tells_what_failed_in_it(
    observations: Observations, make_entry: Callable[..., object], make_status: Callable[..., TopologyStatus]
) -> None:
    """Each failed tuple of a bolt fails one of a spout too, which is told once."""
    observations.put_list("near", [make_entry(state="finished")])  # type: ignore[list-item]
    failed = ComponentStatus("lines", "spout", 1, failed=1576), ComponentStatus("count", "bolt", 1, failed=1576)
    observations.put_status("near", make_status(state="finished", components=failed), None)
    (told,) = troubles(observations.topology("near", "words"))
    assert (told.kind, told.text, told.component) == (
        "failures",
        "1,576 tuples of count failed until it ended",
        "count",
    )


def test_old_values_are_a_trouble(observations: Observations, clock: FakeClock) -> None:
    """A page that is green because nobody answers would lie. The reason has addresses and time limits: see `error`."""
    clock.advance(9.0)
    observations.fail_topology("near", "words", "it does not answer")
    assert troubles(observations.topology("near", "words")) == (TroubleItem("away", "newer values cannot be read"),)


def test_a_thousand_troubles_are_twenty_sentences(seen: Seen) -> None:
    """The list of topologies stays a list."""
    down = tuple(ProcessStatus(1, f"count-{number}", "down", 0, 1, number) for number in range(1, 1001))
    found = troubles(seen(processes=down))
    assert (len(found), found[-1].text) == (20, "and 981 more")
