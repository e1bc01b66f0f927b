"""Canaries are worse if they die, fail, raise, stand still or take longer than the other tasks; noise is not worse."""

from __future__ import annotations

import pytest

from heron_cli.launch.code.task_health import TaskCounts, compared_health

OLD = TaskCounts(tuples=10_000, failed=20, errors=20, useful_s=6.0, seconds=60.0)
TASKS = {2: "count", 3: "count", 4: "count"}


def worse(new: TaskCounts, old: TaskCounts = OLD) -> str:
    """Why task 4 is worse than tasks 2 and 3."""
    (found,) = compared_health(TASKS, {2: old, 3: old, 4: new}, [4])
    assert found.component == "count"
    return found.worse


@pytest.mark.parametrize(
    "new",
    [
        OLD,
        TaskCounts(tuples=100, failed=1, errors=1, useful_s=0.08, seconds=60.0),
        TaskCounts(tuples=50, failed=2, useful_s=60.0, seconds=60.0),
        TaskCounts(tuples=10_000, failed=100, useful_s=6.0, seconds=60.0),
        TaskCounts(tuples=1000, useful_s=2.0, seconds=60.0),
        TaskCounts(seconds=60.0),
    ],
    ids=["equal", "few failures", "few tuples", "a percent", "idle", "no key of it"],
)
def test_noise_is_not_worse(new: TaskCounts) -> None:
    assert not worse(new)


@pytest.mark.parametrize(
    ("new", "why"),
    [
        (TaskCounts(tuples=10_000, restarts=2, seconds=60.0), "its new code died 2 times"),
        (
            TaskCounts(tuples=1000, failed=30, seconds=60.0),
            "3.0% of its tuples failed with the new code, 0.2% with the former",
        ),
        (
            TaskCounts(tuples=0, failed=3, seconds=60.0),
            "100.0% of its tuples failed with the new code, 0.2% with the former",
        ),
        (
            TaskCounts(tuples=1000, errors=40, seconds=60.0),
            "4.0% of its tuples raised with the new code, 0.2% with the former",
        ),
        (
            TaskCounts(tuples=10_000, useful_s=15.0, seconds=60.0),
            "a tuple takes 1,500 µs with the new code, 600 µs with the former",
        ),
        (
            TaskCounts(waiting_bytes=1000, seconds=60.0),
            "its new code processes nothing, and tuples wait for it",
        ),
    ],
)
def test_what_is_worse_has_a_reason(new: TaskCounts, why: str) -> None:
    assert worse(new) == why


def test_a_component_without_other_tasks_is_compared_with_those_that_it_had() -> None:
    """Their counts are of another time, so they count by tuple too."""
    counts = {1: OLD, 5: TaskCounts(tuples=100, failed=50, seconds=60.0)}
    (found,) = compared_health({1: "word", 5: "word"}, counts, [5])
    assert "50.0% of its tuples failed" in found.worse
    assert found.text == (
        "word: new 100 tuples, 50 failed, 0 errors, 0 µs each, 0% busy; "
        "former 10,000 tuples, 20 failed, 20 errors, 600 µs each, 10% busy"
    )


def test_counts_of_a_process_that_has_restarted_begin_again() -> None:
    after = TaskCounts(tuples=10, useful_s=1.0, restarts=1, waiting_bytes=5, seconds=2.0)
    before = TaskCounts(tuples=100, useful_s=9.0, restarts=0, waiting_bytes=7, seconds=10.0)
    assert after.since(before) == after
    assert before.since(TaskCounts(tuples=60, seconds=4.0)).tuples == 40
