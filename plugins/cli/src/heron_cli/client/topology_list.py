"""Every topology of a profile in one line each, running or over."""

from __future__ import annotations

from dataclasses import dataclass

from heron.clock import wall_s
from heron.errors import HeronError, SchedulerError
from heron_cli.client.cleanup import settle
from heron_cli.client.discovery import ENDED, Facts, RunState, classify, is_over, survey, topologies
from heron_cli.client.environment import Environment

__all__ = ["Entry", "Roll", "roll"]


@dataclass(frozen=True, slots=True)
class Entry:
    """One topology; `since_s` is when it was submitted, or when it ended if it has (wall-clock seconds).

    `containers` are those with tasks; `version` is of the heron-core that submitted it. `errors` are what keeps it
    from running, or why it ended.
    """

    name: str
    id: str
    role: str
    env: str
    state: str
    since_s: float | None
    containers: int
    tasks: int
    user: str = ""
    host: str = ""
    profile: str = ""
    logs: str = ""
    version: str = ""
    errors: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Roll:
    """The entries by name, and what was found and removed on the way."""

    entries: tuple[Entry, ...]
    notes: tuple[str, ...]


def roll(environment: Environment) -> Roll:
    """Looks at every topology; tidies up after those that are over.

    Raises:
        StateUnavailableError: when the state manager does not answer.
    """
    entries: list[Entry] = []
    notes: list[str] = []
    for name in topologies(environment.statemgr):
        try:
            facts = survey(environment, name)
            if is_over(facts) or (facts.run is None and facts.report and facts.report.expired(wall_s())):
                notes += _settled(environment, name)
                facts = survey(environment, name)
        except SchedulerError as error:
            entries.append(_unknown(name, error))
            continue
        state = classify(facts)
        if state is not None:
            entries.append(_entry(facts, state))
    return Roll(tuple(entries), tuple(notes))


def _settled(environment: Environment, name: str) -> list[str]:
    """The note, if there is one; who may only look can still see the list."""
    try:
        note = settle(environment, name)
    except HeronError as error:
        note = f"topology {name!r} is over, but cannot be tidied up: {error}"
    return [note] if note else []


def _entry(facts: Facts, state: RunState) -> Entry:
    status = facts.report.status if facts.report and state in ENDED else None
    run = facts.run or (facts.report.run if facts.report else None)
    errors = [f"container {each.container_id}: {each.last_error}" for each in facts.troubles]
    if status:
        errors = [status.error] if status.error else []
    if facts.error:
        errors.insert(0, facts.error)
    since_s = status.ended_at_s if status else run.submitted_at_s if run else None
    topology_id = run.topology_id if run else status.topology_id if status else ""
    return Entry(
        facts.topology,
        topology_id,
        run.role if run else "",
        run.env if run else "",
        state.value,
        since_s,
        facts.containers,
        facts.tasks,
        run.user if run else "",
        run.host if run else "",
        run.profile if run else "",
        run.log_dir if run else "",
        run.version if run else "",
        tuple(errors),
    )


def _unknown(name: str, error: HeronError) -> Entry:
    return Entry(name, "", "", "", RunState.ELSEWHERE.value, None, 0, 0, errors=(str(error),))
