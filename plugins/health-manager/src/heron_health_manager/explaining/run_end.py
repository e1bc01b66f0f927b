"""How a topology ended, if it ended: from its last report, else from the history of events. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from heron_health_manager.explaining.explanation import Problem
from heron_health_manager.explaining.facts import Facts
from heron_health_manager.explaining.words import clock_time, duration

__all__ = ["RunEnd", "end_problem", "run_end"]

_FAILED = 100.0  # gravity
_GOOD = ("finished", "killed")


@dataclass(frozen=True, slots=True)
class RunEnd:
    """The state in which a topology ended, when (wall-clock seconds), and its error.

    `state` is "" if no end is recorded; then `at_s` is the time of the last event.
    """

    state: str
    at_s: float | None
    error: str = ""
    started_s: float | None = None

    def short(self) -> str:
        """``finished at 13:04:12 UTC``."""
        when = f" at {clock_time(self.at_s)}" if self.at_s is not None else ""
        return f"{self.state}{when}" if self.state else "it does not run any more"

    def text(self, topology: str) -> str:
        """``words failed at 13:04:12 UTC, after 3 min 20 s``."""
        if not self.state:
            last = f"; its last event was at {clock_time(self.at_s)}" if self.at_s is not None else ""
            return f"{topology} does not run any more, and no end is recorded{last}"
        verb = "was killed" if self.state == "killed" else self.state
        when = f" at {clock_time(self.at_s)}" if self.at_s is not None else ""
        after = ""
        if self.at_s is not None and self.started_s is not None:
            after = f", after {duration(self.at_s - self.started_s)}"
        return f"{topology} {verb}{when}{after}"


def run_end(facts: Facts) -> RunEnd | None:
    """How it ended; None if it runs."""
    if facts.running:
        return None
    if facts.status is not None:
        status = facts.status
        return RunEnd(status.state, status.ended_at_s, status.error, status.started_at_s)
    events = facts.events or ()
    started_s = events[0].at_s if events else None
    for event in reversed(events):
        if event.name == "topology-ended":
            return RunEnd(event.attributes.get("state", ""), event.at_s, event.attributes.get("error", ""), started_s)
    return RunEnd("", events[-1].at_s if events else None, started_s=started_s)


def end_problem(facts: Facts, deaths: Sequence[Problem]) -> tuple[Problem | None, tuple[Problem, ...]]:
    """The failure of the topology, and the other problems: the death that caused it becomes its cause."""
    end = run_end(facts)
    if end is None or end.state in _GOOD:
        return None, tuple(deaths)
    cause = next((each for each in deaths if _is_named(each, end.error)), None)
    if cause is not None:
        failed = replace(
            cause, kind="topology-failed", what=end.text(facts.topology), why=(cause.what, *cause.why), gravity=_FAILED
        )
        return failed, tuple(each for each in deaths if each is not cause)
    command = f"heron logs {facts.topology}"
    why = end.error or ("its last report is gone" if not end.state else "no error is recorded")
    action = "correct the error" if end.error else "look at the last lines of its logs"
    text = end.text(facts.topology)
    failed = Problem("topology-failed", "", text, (why,), end.at_s, action=action, command=command, gravity=_FAILED)
    return failed, tuple(deaths)


def _is_named(problem: Problem, error: str) -> bool:
    """Whether the error of the topology is about the task or process of a problem."""
    component, _, task = problem.subject.partition("/")
    if task:
        return f"component {component!r}, task {task} " in error
    return problem.subject.removeprefix("the ") in error
