"""Lists the topologies of a profile, running or over, and cleans up after those that are over."""

from __future__ import annotations

from dataclasses import dataclass, replace

from heron.clock import wall_s
from heron.errors import HeronError, SchedulerError
from heron.ipc.documents.status import TopologyStatus
from heron.state_nodes.execution_state import ExecutionState
from heron_cli.topologies.environment import Environment
from heron_cli.topologies.run_nodes import topologies
from heron_cli.topologies.runs.cleanup import clean_up
from heron_cli.topologies.runs.discovery import ENDED, Facts, RunState, classify, discover, is_over

__all__ = ["TopologyEntry", "TopologyList", "list_topologies"]


@dataclass(frozen=True, slots=True)
class TopologyEntry:
    """One topology of a `TopologyList`.

    `state` is the value of a `RunState`. `since_s` is when it was submitted or, once it has ended, when it ended, in
    wall-clock seconds. `containers` counts container 0 too; 0 when unknown. `version` is that of the heron-core that
    submitted it. `errors` are the reasons why it does not run, or why it ended.
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
class TopologyList:
    """The topologies by name, and notes about ended runs that were removed."""

    entries: tuple[TopologyEntry, ...]
    notes: tuple[str, ...]


def list_topologies(environment: Environment, *, clean: bool = True) -> TopologyList:
    """Look at every topology; with `clean`, clean up after those that are over.

    Raises:
        StateUnavailableError: when the state manager does not answer.
    """
    entries: list[TopologyEntry] = []
    notes: list[str] = []
    for name in topologies(environment.statemgr):
        try:
            facts = discover(environment, name)
            if clean and (is_over(facts) or (facts.run is None and facts.report and facts.report.expired(wall_s()))):
                notes += _cleaned_up(environment, name)
                facts = discover(environment, name)
        except SchedulerError as error:
            entries.append(_unknown(name, error))
            continue
        state = classify(facts)
        if state is not None:
            entries.append(_entry(facts, state))
    return TopologyList(tuple(entries), tuple(notes))


def _cleaned_up(environment: Environment, name: str) -> list[str]:
    """Return the note, if there is one. A user without write access can still see the list."""
    try:
        note = clean_up(environment, name)
    except HeronError as error:
        note = f"topology {name!r} is over, but cannot be cleaned up: {error}"
    return [note] if note else []


def _entry(facts: Facts, state: RunState) -> TopologyEntry:
    """Return what is known of a run: from its execution state or else its last report, which alone knows its end."""
    run = facts.run or (facts.report.run if facts.report else None)
    status = facts.report.status if facts.report and state in ENDED else None
    entry = TopologyEntry(
        facts.topology,
        id=status.topology_id if status else "",
        role="",
        env="",
        state=state.value,
        since_s=status.ended_at_s if status else None,
        containers=facts.containers,
        tasks=facts.tasks,
        errors=_errors(facts, status),
    )
    if run is None:
        return entry
    return _of_run(entry if status else replace(entry, since_s=run.submitted_at_s), run)


def _of_run(entry: TopologyEntry, run: ExecutionState) -> TopologyEntry:
    """Return the entry with what a submission has stored of its run."""
    return replace(
        entry,
        id=run.topology_id,
        role=run.role,
        env=run.env,
        user=run.user,
        host=run.host,
        profile=run.profile,
        logs=run.log_dir,
        version=run.version,
    )


def _errors(facts: Facts, status: TopologyStatus | None) -> tuple[str, ...]:
    """Return the node that cannot be read, and why the run ended or, while it lasts, why containers do not run."""
    damage = (facts.error,) if facts.error else ()
    if status is not None:
        return (*damage, status.error) if status.error else damage
    return (*damage, *(f"container {each.container_id}: {each.last_error}" for each in facts.troubles))


def _unknown(name: str, error: HeronError) -> TopologyEntry:
    return TopologyEntry(name, "", "", "", RunState.ELSEWHERE.value, None, 0, 0, errors=(str(error),))
