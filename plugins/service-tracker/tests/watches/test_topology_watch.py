"""The watch of one topology, with a connection that answers as a test wants."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, nullcontext
from types import SimpleNamespace
from typing import cast

import pytest

from heron.errors import StateError, UnreachableError
from heron.ipc.documents.metrics_table import encode_metrics, read_metrics, table_of
from heron.ipc.documents.status import TaskStatus
from heron.spi.scheduler import JobLink
from heron_cli.client import Client, HealthRecords, MetricsRow, TopologyEntry, TopologyPlans, TopologyStatus
from heron_service_tracker.answers.flow import task_rows
from heron_service_tracker.observed.observed import MadeAnswers
from heron_service_tracker.observed.task_figures import FiguresOfTasks
from heron_service_tracker.watches.observations import Observations, Reading
from heron_service_tracker.watches.topology_watch import TopologyWatch, pause_s
from heron_testing.waiting import wait_until

MakeStatus = Callable[..., TopologyStatus]


class Connection:
    """Answers with a status; the other answers are those that a test sets."""

    def __init__(self, status: TopologyStatus, plans: TopologyPlans) -> None:
        self._status = status
        self._plans = plans
        self.metrics_error: UnreachableError | None = None
        self.health: HealthRecords | StateError = HealthRecords(status.topology_id)

    def status(self) -> TopologyStatus:
        """Answer."""
        return self._status

    def metrics(self, *, by_task: bool) -> tuple[MetricsRow, ...]:
        """Answer, or fail."""
        assert by_task
        if self.metrics_error is not None:
            raise self.metrics_error
        return ()

    def read_task_metrics(self, names: Collection[str], reader: FiguresOfTasks) -> None:
        """Answer with a rate, or fail."""
        assert {"emit-count", "task-time-s"} <= set(names)
        if self.metrics_error is not None:
            raise self.metrics_error
        row = MetricsRow("lines", 1, "lines-1", "emit-count", "counter", "tuples", 9.0, {}, 123.0)
        read_metrics(encode_metrics(table_of([row])), reader)

    def plans(self) -> TopologyPlans:
        """Answer."""
        return self._plans

    def health_records(self) -> HealthRecords:
        """Answer, or fail."""
        if isinstance(self.health, StateError):
            raise self.health
        return self.health


@pytest.fixture
def connection(observations: Observations, make_status: MakeStatus) -> Connection:
    """A connection to a topology that is paused since the tracker last asked."""
    plans = observations.topology("near", "words").plans
    assert plans is not None
    return Connection(make_status(state="paused", plan_version=2), plans)


@contextmanager
def watched(observations: Observations, connection: Connection) -> Iterator[None]:
    """Watch the topology, in whose scheduler it has one page."""
    links = SimpleNamespace(links=(JobLink("Spark", "http://h1:4040"),))
    client = SimpleNamespace(
        topology=lambda _name, timeout_s: nullcontext(connection), status=lambda _name, timeout_s: links
    )
    watch = TopologyWatch(lambda: cast("Client", nullcontext(client)), observations, ("near", "words"), 0.01)
    watch.start()
    try:
        yield
    finally:
        watch.stop()
        watch.join(20.0)


def test_figures_are_read_without_the_other_metrics(observations: Observations, connection: Connection) -> None:
    """Somebody looks at a page with the rates of tasks."""
    before = observations.looked_at("near", "words", Reading.FIGURES)
    with watched(observations, connection):
        wait_until(lambda: observations.topology("near", "words").figures is not before.figures, 20.0, "the figures")
    found = observations.topology("near", "words")
    assert found.figures.by_task[1].emit_per_s == 123.0
    assert (found.metrics, found.metrics_at_s) == (before.metrics, before.metrics_at_s)


def test_the_answers_of_an_open_page_are_made_by_the_watch(observations: Observations, connection: Connection) -> None:
    """The event loop answers nobody while it makes the rows of a thousand tasks. Without a page nobody needs them."""
    observations.looked_at("near", "words", Reading.FIGURES)
    with watched(observations, connection):
        before = observations.topology("near", "words").figures
        wait_until(lambda: observations.topology("near", "words").figures is not before, 20.0, "the figures")
        assert observations.topology("near", "words").made.flow is None
        seen: list[MadeAnswers] = []
        observations.listen("near", "words", lambda value: seen.append(value.made))
        wait_until(lambda: any(each.flow for each in seen), 20.0, "what was made")
    made = next(each for each in seen if each.flow)
    assert made.tasks is not None
    assert made.flow is not None
    assert [(each.task_id, each.emit_per_s) for each in made.tasks] == [(1, 123.0), (2, None)]
    assert [(each.name, each.emit_per_s) for each in made.flow[0]] == [("lines", 123.0), ("count", 0.0)]


def test_what_was_made_of_a_value_is_gone_with_it(
    observations: Observations, make_status: MakeStatus, make_entry: Callable[..., TopologyEntry]
) -> None:
    """A list without a change leaves the value; a new status replaces it."""
    assert [each.state for each in task_rows(observations.topology("near", "words"))] == ["running", "running"]
    observations.put_list("near", [make_entry()])
    assert observations.topology("near", "words").made.tasks is not None
    tasks = (TaskStatus(1, "lines", 1, "restarting", 2),)
    observations.put_status("near", make_status(tasks=tasks), None)
    assert observations.topology("near", "words").made.tasks is None
    assert [each.state for each in task_rows(observations.topology("near", "words"))] == ["restarting"]


@pytest.mark.parametrize("reading", [Reading.FIGURES, Reading.ALL])
def test_a_status_is_shown_although_its_metrics_do_not_come(
    observations: Observations, connection: Connection, reading: Reading
) -> None:
    """The metrics of thousands of tasks may take longer than the time limit."""
    connection.metrics_error = UnreachableError("no answer within 2 s")
    observations.looked_at("near", "words", reading)  # somebody looks at them
    with watched(observations, connection):
        wait_until(lambda: observations.topology("near", "words").error != "", 20.0, "the reason")
    found = observations.topology("near", "words")
    assert found.status is not None
    assert (found.status.state, found.error) == ("paused", "no answer within 2 s")


@pytest.mark.parametrize("damaged", [True, False])
def test_decisions_and_pages_are_read_beside_the_status(
    observations: Observations, connection: Connection, damaged: bool
) -> None:
    """Decisions that cannot be read hide nothing else."""
    records = HealthRecords("words-1", "act")
    connection.health = StateError("the node is damaged") if damaged else records
    with watched(observations, connection):
        wait_until(lambda: observations.topology("near", "words").links != (), 20.0, "the pages of the scheduler")
        if not damaged:
            wait_until(lambda: observations.topology("near", "words").health == records, 20.0, "the decisions")
    found = observations.topology("near", "words")
    assert [each.title for each in found.links] == ["Spark"]
    assert (found.error, found.health) == ("", None if damaged else records)


@pytest.mark.parametrize("period_s", [0.2, 1.0, 60.0])
@pytest.mark.parametrize("now_s", [1_700_000_000.0, 1_700_000_000.37, 1_700_000_033.999])
def test_watches_meet_while_nobody_looks_and_have_moments_of_their_own_otherwise(period_s: float, now_s: float) -> None:
    """A second of the history has one round of each watch: no moment is near its end."""
    places = [f"local/topology-{number}" for number in range(50)]
    for together in (True, False):
        pauses = [pause_s(now_s, period_s, each, together=together) for each in places]
        assert all(0 < each <= period_s for each in pauses)
        moments = [(now_s + each) / period_s % 1 for each in pauses]
        assert all(0.24 < each < 0.76 for each in moments)
        assert len({round(each, 3) for each in moments}) == 1 if together else len(set(moments)) == 50
    assert pause_s(now_s, period_s, "a", together=False) == pause_s(now_s, period_s, "a", together=False)
