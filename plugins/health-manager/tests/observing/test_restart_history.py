"""The restarts of the last ten minutes, whatever the look-back window of a policy is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from heron.spi.health_values import Observation
from heron_health_manager.diagnosing.policy_round import run_round
from heron_health_manager.ds2_policy import Ds2Policy
from heron_health_manager.observing.restart_history import SPAN_S, RestartHistory
from heron_testing.contracts.health import busy_topology

OLD_S = 10 * SPAN_S


def test_restarts_are_counted_for_ten_minutes() -> None:
    """Each as long as it is recent."""
    history = RestartHistory()
    counts = [history.recent({2: 7 + second // 240, 3: 1}, float(second), OLD_S) for second in range(0, 1000, 20)]
    assert [each.get(2, 0) for each in counts][::6] == [0, 0, 1, 1, 2, 2, 3, 3, 3]
    assert counts[43] == {2: 2}, "that of 240 s is older at 860 s"


def test_counts_from_before_are_recent_only_in_a_young_topology() -> None:
    """A command looks for seconds; a health manager may have been restarted itself."""
    assert RestartHistory().recent({2: 4, 3: 0}, 100.0, SPAN_S - 1.0) == {2: 4}
    assert RestartHistory().recent({2: 4, 3: 0}, 100.0, SPAN_S + 1.0) == {}


def test_a_new_task_and_one_that_leaves_are_no_error() -> None:
    """The plan may change; the restarts of a task that joins are new."""
    history = RestartHistory()
    history.recent({2: 1}, 0.0, OLD_S)
    assert history.recent({3: 1}, 1.0, OLD_S) == {3: 1}
    assert history.recent({2: 0, 3: 1}, 2.0, OLD_S) == {3: 1}


def crashes(every_s: int, until_s: int) -> Iterator[Observation]:
    """Task 2 dies once in that time, and is busy in between; one observation per second."""
    history, (moment,) = RestartHistory(), busy_topology(moments=1)
    for second in range(until_s):
        counts = {2: 3 + second // every_s}
        recent = history.recent(counts, float(second), OLD_S)
        yield replace(moment, at_s=float(second), restarts=counts, recent_restarts=recent)


def test_a_loop_that_is_longer_than_the_window_is_found() -> None:
    """The back-off reaches 10 s, and a process may run for a minute before it dies."""
    window = list(crashes(120, 445))[-15:]
    found = run_round(Ds2Policy.open({}), window)
    assert found is not None
    assert found.measurements.value("restarts", found.findings[0].diagnosis.subject) == 0.0
    assert found.findings[0].diagnosis.name == "restart-loop"
    assert found.findings[0].diagnosis.evidence == ("work/2 was restarted 3 times within 10 min",)
