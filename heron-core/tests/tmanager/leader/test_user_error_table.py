"""Errors of user code as a leader knows them: one for each line of a component, with the counts of all its tasks."""

from __future__ import annotations

from heron.ipc.documents.status import UserErrorStatus
from heron.spi.metricsink import Event, Metric, MetricKind, MetricsRecord, Source
from heron.tmanager.leader.user_error_table import UserErrorTable

NAME = "process: KeyError at wc.py, line 3"


def record(
    task: int, count: int, at_s: float, *, incarnation: int = 1, first: bool = False, name: str = NAME
) -> MetricsRecord:
    """A record of a task that has raised this error so often."""
    about = {"message": message(task), "error": name, "exception": "KeyError", "place": "wc.py, line 3", "trace": "T"}
    events = (Event(f"e-{task}", "user-error", at_s - 0.25, f"task-{task}", "", about),) if first else ()
    metrics = (Metric("user-error-count", MetricKind.COUNTER, "errors", count, {"error": name}),)
    return MetricsRecord(Source("wc", 1, f"count-{task}", incarnation, "count", task), at_s, metrics, events)


def message(task: int) -> str:
    return f"topology 'wc', component 'count', task {task}: process raised KeyError: 'a'; at wc.py, line 3; it goes on"


def of(*records: MetricsRecord) -> tuple[UserErrorStatus, ...]:
    """What a leader knows after these records."""
    table = UserErrorTable()
    for each in records:
        table.take(each)
    return table.statuses()


def test_counts_of_tasks_are_one_error_with_its_first_and_newest_time() -> None:
    """Message and traceback are those of the first report."""
    (found,) = of(
        record(2, 1, 10.0, first=True), record(3, 4, 11.0, first=True), record(2, 140, 15.0), record(3, 4, 16.0)
    )
    assert (found.component, found.error, found.count, found.tasks) == ("count", NAME, 144, {2: 140, 3: 4})
    assert (found.first_at_s, found.newest_at_s) == (9.75, 15.0)
    assert (found.exception, found.place, found.message, found.trace) == ("KeyError", "wc.py, line 3", message(2), "T")


def test_an_error_that_was_raised_once_has_one_time() -> None:
    """The time of a record is later by up to an export period."""
    (found,) = of(record(2, 1, 10.0, first=True), record(2, 1, 11.0))
    assert (found.count, found.first_at_s, found.newest_at_s) == (1, 9.75, 9.75)


def test_counts_go_on_over_restarts_and_late_records_change_nothing() -> None:
    """A counter is the total of one incarnation."""
    late = record(2, 5, 10.5)
    (found,) = of(record(2, 7, 11.0, first=True), late, record(2, 2, 20.0, incarnation=2, first=True), late, late)
    assert (found.count, found.newest_at_s) == (9, 20.0)
    assert found.first_at_s == 10.75


def test_a_later_leader_knows_counts_and_no_time_until_the_next_failure() -> None:
    """The tasks sent message and traceback to its predecessor; a wrong time would be worse than none."""
    (found,) = of(record(2, 7, 11.0))
    assert (found.error, found.count, found.first_at_s, found.newest_at_s, found.message) == (NAME, 7, None, None, "")
    (found,) = of(record(2, 7, 11.0), record(2, 8, 12.0), record(3, 1, 13.0, first=True))
    assert (found.count, found.first_at_s, found.newest_at_s, found.message) == (9, None, 13.0, message(3))


def test_the_errors_that_were_raised_last_are_kept() -> None:
    """A topology with many mistakes still has a short status."""
    names = [f"process: KeyError at wc.py, line {number}" for number in range(51)]
    found = of(
        *(record(2, 2, 10.0 + at, first=True, name=name) for at, name in enumerate(names)),
        record(2, 3, 90.0, name=names[0]),
    )
    assert [each.error for each in found] == names[1:]
    assert of(*(record(2, 2, 1.0, name=name) for name in names))[-1].error == names[49]


def test_the_texts_of_all_its_tasks_belong_to_an_error() -> None:
    """The status lists them too, for older readers; another line or component is another error."""
    (found,) = of(record(2, 1, 10.0, first=True))
    assert found.has(message(2))
    assert found.has(message(3))
    for part, other in (("line 3", "line 4"), ("'count'", "'split'"), ("KeyError", "ValueError")):
        assert not found.has(message(3).replace(part, other))
    (named,) = of(record(2, 7, 11.0))  # a later leader has the name alone
    assert (named.exception, named.place, named.has(message(2))) == ("KeyError", "wc.py, line 3", True)
    (others,) = of(record(2, 7, 11.0, name="other errors"))
    assert (others.exception, others.place, others.has(message(2))) == ("", "", False)
