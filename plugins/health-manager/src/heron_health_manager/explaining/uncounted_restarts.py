"""Where the history of events and the status contradict each other. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from heron_cli.view.text import counted
from heron_health_manager.explaining.deaths import EXECUTOR, Deaths
from heron_health_manager.explaining.facts import Facts

__all__ = ["uncounted_restarts"]


def uncounted_restarts(facts: Facts) -> Iterator[str]:
    """Processes whose status counts more restarts than the history has: it was rotated, or is on other hosts."""
    if facts.events is None or facts.status is None:
        return
    died: dict[tuple[int, str], int] = {}
    for event in facts.events:
        if event.name == "process-died":
            died[event.container_id, event.subject] = died.get((event.container_id, event.subject), 0) + 1
    for each in facts.status.processes:
        known = died.get((each.container_id, each.process), 0)
        if each.process != EXECUTOR and each.restarts > known:
            who = Deaths(each.container_id, each.process, (), (), 0).who
            yield f"the status counts {counted(each.restarts, 'restart')} of {who}, the history of events has {known}"
