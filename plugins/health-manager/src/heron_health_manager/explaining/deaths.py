"""Processes and containers that died: how often, by what, and what they had grown to before. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from heron_cli.topologies.logs.log_files import who_writes
from heron_cli.view.text import counted
from heron_health_manager.explaining.death_reason import DeathKind, DeathReason, death_reason
from heron_health_manager.explaining.explanation import Problem
from heron_health_manager.explaining.facts import Facts, PastEvent
from heron_health_manager.explaining.growth import grown_before
from heron_health_manager.explaining.words import duration

__all__ = ["EXECUTOR", "Deaths", "death_problems", "deaths_of"]

_DOWN, _DIED = 90.0, 70.0  # gravity
EXECUTOR = "executor"
"""The process that a container is; its end is the end of the container."""

_ENGINE_NAMES = {"stmgr": "the stream manager", "tmanager": "the topology manager", "metricsmgr": "the metrics manager"}


@dataclass(frozen=True, slots=True)
class Deaths:
    """The deaths of one process in the time that is explained; of an executor, which ends its container.

    `at_s` are wall-clock seconds, oldest first. `counted` deaths may be more than `at_s`, where only a count is left.
    """

    container_id: int
    process: str
    reasons: tuple[DeathReason, ...]
    at_s: tuple[float, ...]
    counted: int
    given_up: bool = False

    @property
    def who(self) -> str:
        """The process as people read it: ``count/3``, ``the stream manager of container 1``."""
        if self.process == EXECUTOR:
            return f"container {self.container_id}"
        if self.process in _ENGINE_NAMES:
            return f"{_ENGINE_NAMES[self.process]} of container {self.container_id}"
        return who_writes(self.process)[0]

    @property
    def task_id(self) -> int:
        """The task, 0 for a process of the engine."""
        return who_writes(self.process)[1]


def death_problems(facts: Facts) -> Iterator[Problem]:
    """A problem for each process that died."""
    for each in deaths_of(facts):
        yield _problem(each, facts)


def deaths_of(facts: Facts) -> tuple[Deaths, ...]:
    """The deaths by process: from the history of events, else from the counts of the status."""
    if facts.events is None:
        return tuple(_from_status(facts))
    by_process: dict[tuple[int, str], list[PastEvent]] = {}
    down = set()
    for event in facts.events:
        if event.at_s < facts.since_s:
            continue
        if event.name == "process-died":
            by_process.setdefault((event.container_id, event.subject), []).append(event)
        elif event.name == "container-ended":
            by_process.setdefault((event.container_id, EXECUTOR), []).append(event)
        elif event.name == "process-given-up":
            down.add((event.container_id, event.subject))
        elif event.name == "process-started":
            down.discard((event.container_id, event.subject))
    return tuple(
        Deaths(
            *place,
            tuple(death_reason(each.attributes.get("reason", "")) for each in events),
            tuple(each.at_s for each in events),
            len(events),
            place in down,
        )
        for place, events in by_process.items()
    )


def _from_status(facts: Facts) -> Iterator[Deaths]:
    for each in facts.status.processes if facts.status else ():
        if each.last_error:
            given_up = each.state == "down"
            times = each.restarts + (each.state != "running")
            yield Deaths(each.container_id, each.process, (death_reason(each.last_error),), (), times, given_up)


def _problem(deaths: Deaths, facts: Facts) -> Problem:
    newest = deaths.reasons[-1]
    gravity = (_DOWN if deaths.given_up else _DIED) + min(9.0, deaths.counted)
    return Problem(
        kind="given-up" if deaths.given_up else "restarts",
        subject=deaths.who,
        what=_what(deaths, facts),
        why=tuple(_why(deaths, facts)),
        since_s=deaths.at_s[0] if deaths.at_s else None,
        ruled_out=tuple(_ruled_out(newest)),
        action=_action(deaths, newest),
        command=_command(deaths, facts),
        gravity=gravity,
    )


def _what(deaths: Deaths, facts: Facts) -> str:
    times = "once" if deaths.counted == 1 else counted(deaths.counted, "time")
    span = f" in {duration(deaths.at_s[-1] - deaths.at_s[0])}" if len(deaths.at_s) > 1 else ""
    if deaths.given_up:
        return f"{deaths.who} died {times}{span} and is given up"
    verb = "was restarted" if facts.running else "died"
    return f"{deaths.who} {verb} {times}{span}"


def _why(deaths: Deaths, facts: Facts) -> Iterator[str]:
    newest = deaths.reasons[-1]
    same = sum(each.kind is newest.kind and each.text == newest.text for each in deaths.reasons)
    share = f", {same} of {len(deaths.reasons)} times" if len(deaths.reasons) > 1 else ""
    growth = grown_before(facts.gauges, deaths.container_id, deaths.process, deaths.at_s[-1]) if deaths.at_s else None
    after = ""
    if growth is not None and newest.kind is DeathKind.MEMORY:
        after = f", {duration(growth.before_s)} after {growth.largest}"
    yield f"{newest.text}{share}{after}"
    if newest.last_line and newest.kind is not DeathKind.MEMORY:
        yield f"its last output: {newest.last_line}"
    if growth is not None and growth.memory:
        yield growth.memory
    if error := _error_of(deaths, facts):
        yield error


def _error_of(deaths: Deaths, facts: Facts) -> str:
    """What the task itself has reported; it names the line of the author's code."""
    if not deaths.task_id or facts.status is None:
        return ""
    mark = f"task {deaths.task_id} (container {deaths.container_id}): "
    found = (each for each in facts.status.errors if mark in each and " raised " in each)
    return next((each.partition(mark)[2] for each in found), "")


def _ruled_out(reason: DeathReason) -> Iterator[str]:
    match reason.kind:
        case DeathKind.MEMORY | DeathKind.SIGNALLED:
            yield "an error of its code (it left no exit code)"
            yield from reason.ruled_out
        case DeathKind.EXITED | DeathKind.NOT_STARTED | DeathKind.TEMPORARY:
            yield "a signal, such as the kernel's for memory (it ended by itself)"
        case DeathKind.CRASHED:
            yield "a signal from outside (a process causes this one itself)"
        case DeathKind.UNKNOWN:
            return


def _action(deaths: Deaths, newest: DeathReason) -> str:
    component = deaths.process.rpartition("-")[0] if deaths.task_id else "it"
    actions = {
        DeathKind.MEMORY: f"give container {deaths.container_id} more memory, or keep less in {component}",
        DeathKind.SIGNALLED: "find who sends the signal on its host; the engine does not",
        DeathKind.CRASHED: "look for a library with native code in its output",
        DeathKind.EXITED: "correct the error that its output shows",
        DeathKind.NOT_STARTED: "correct its initialize(); its log has the error and the line",
        DeathKind.TEMPORARY: "remove the cause that is named above; the engine starts it again by itself",
        DeathKind.UNKNOWN: "look at its output",
    }
    again = ", then `heron restart` its container" if deaths.given_up else ""
    return f"{actions[newest.kind]}{again}"


def _command(deaths: Deaths, facts: Facts) -> str:
    if deaths.given_up and facts.running and not deaths.task_id:
        return f"heron restart {facts.topology} {deaths.container_id}"
    return f"heron logs {facts.topology}" + (f" --task {deaths.task_id}" if deaths.task_id else "")
