"""A task whose memory grows is told after some minutes, also if its component has no other task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

from heron_cli.client import MetricsRow, TopologyStatus
from heron_service_tracker.answers.answers import TroubleItem
from heron_service_tracker.answers.trouble import troubles
from heron_service_tracker.observed.recent_memory import RecentMemory, growing_tasks, memory_after
from heron_service_tracker.observed.task_figures import FiguresOfTasks, figures_of_tasks
from heron_service_tracker.watches.observations import Observations

MIB = 2.0**20


def figures(*sizes: float | None) -> FiguresOfTasks:
    """The figures of tasks 2, 3, … of `count`; None for a task that does not report."""
    return figures_of_tasks(
        MetricsRow("count", number, f"count-{number}", "resident-bytes", "gauge", "bytes", size * MIB)
        for number, size in enumerate(sizes, 2)
        if size is not None
    )


def grown(looks: Sequence[FiguresOfTasks], period_s: float = 30.0) -> list[tuple[int, float, float]]:
    """The tasks that grow after these looks, with the MiB before and now."""
    memory, found = RecentMemory(), FiguresOfTasks()
    for number, found in enumerate(looks):
        memory = memory_after(memory, found, 1000.0 + number * period_s)
    return [(each.task_id, each.bytes_before / MIB, each.bytes_now / MIB) for each in growing_tasks(memory, found)]


def test_a_task_that_grows_in_each_half_minute_is_found() -> None:
    """The growth is that of the last three minutes."""
    leak = [figures(40.0, 40.0 + 5 * moment) for moment in range(8)]
    assert grown(leak[:6]) == []
    assert grown(leak[:7]) == [(3, 40.0, 70.0)]
    assert grown(leak) == [(3, 45.0, 75.0)]


@pytest.mark.parametrize(
    "sizes",
    [
        (40, 40, 40, 90, 90, 90, 90),  # one large allocation
        (40, 45, 50, 45, 60, 65, 70),  # memory that is given back
        (40, 41, 42, 43, 44, 45, 46),  # some MiB
        (400, 410, 420, 430, 440, 450, 460),  # a small part of what it has
        (40, 45, 50, None, 60, 65, 70),  # another process
    ],
)
def test_other_changes_are_no_growth(sizes: tuple[float | None, ...]) -> None:
    """State that fills once, a heap that breathes, and a process that begins again are no leak."""
    assert grown([figures(size) for size in sizes]) == []


def test_looks_in_between_and_long_gaps_do_not_count() -> None:
    """Figures are read every second while somebody looks; after a gap nobody knows what happened in it."""
    assert grown([figures(40.0 + moment) for moment in range(181)], 1.0) == [(2, 40.0, 220.0)]
    assert grown([figures(40.0 + 5 * moment) for moment in range(8)], 61.0) == []


def test_the_sentence_names_the_task_and_both_sizes(
    observations: Observations, make_status: Callable[..., TopologyStatus]
) -> None:
    """It is the only task of its component, so there is nothing to compare it with."""
    topology = replace(observations.topology("near", "words"), status=make_status(state="running"))
    for moment in range(7):
        found = figures(40.0 + 5 * moment)
        topology = replace(topology, figures=found, memory=memory_after(topology.memory, found, 1e6 + 30.0 * moment))
    text = "count/2 needs more and more memory: 40 MiB about 3 minutes ago, 70 MiB now"
    assert TroubleItem("memory", text, "count", 2) in troubles(topology)
