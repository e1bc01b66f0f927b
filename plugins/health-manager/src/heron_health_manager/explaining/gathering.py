"""Gathers the facts about a topology: from its topology manager, the state manager, and the files of this machine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from heron.clock import wall_s
from heron.errors import HeronError, UnreachableError, UsageError
from heron.ipc.documents.status import TopologyStatus
from heron.planner.physical_plan import ENDED_STATES
from heron.spi.health import HealthPolicy
from heron_cli.client.client import Client
from heron_cli.topologies.logs.dead_letters import stored_letters
from heron_health_manager.diagnosing.policy_round import Round, run_round
from heron_health_manager.explaining.deaths import EXECUTOR, deaths_of
from heron_health_manager.explaining.enough import observed
from heron_health_manager.explaining.facts import Facts, PastGauges
from heron_health_manager.explaining.growth import LOOK_BACK_S
from heron_health_manager.explaining.history_files import read_events, read_gauges
from heron_health_manager.explaining.span import Since
from heron_health_manager.observing.observing import observe

__all__ = ["gather", "grown"]

_ENDED = frozenset(each.value for each in ENDED_STATES)


def gather(client: Client, name: str, policy: HealthPolicy, since: Since, timeout_s: float) -> Facts:
    """Observe a topology that runs, and read the history of it or of its last run.

    Raises:
        UsageError: when no topology of that name runs, and none has left a report or logs.
        StateError: when the state manager does not answer.
    """
    seen = _ask(client, name, timeout_s)
    folder, no_folder = _folder(client, name, timeout_s)
    if folder is None and seen.error is not None:
        raise seen.error
    events = read_events(folder) if folder is not None else None
    unknown = list(seen.unknown)
    if events is None:
        unknown.append(f"the history: {no_folder or f'{folder} has no events; the metrics sink file writes them'}")
    found, observed_s, status = None, 0.0, seen.status
    if seen.running and status is not None:
        found, observed_s, why = _observe(client, name, policy, timeout_s)
        unknown += why
        later = _ask(client, name, timeout_s)
        status = later.status if later.running and later.status is not None else status
    now_s = wall_s() if seen.running else _end_s(seen.status, events[-1].at_s if events else None)
    facts = Facts(name, now_s, since.before(now_s), seen.running, status, events, (), found, observed_s, tuple(unknown))
    facts = replace(facts, failing=grown(seen.status, status))
    if seen.running:
        facts = _with_containers(facts, client, timeout_s)
    if folder is None:
        return facts
    try:
        letters = stored_letters(folder)
    except UsageError as error:
        return replace(facts, gauges=_gauges(facts, folder), unknown=(*facts.unknown, str(error)))
    return replace(facts, gauges=_gauges(facts, folder), letters=letters)


@dataclass(frozen=True, slots=True)
class _Seen:
    """The status, or why there is none; `error` if the topology is not known to the state manager any more."""

    running: bool
    status: TopologyStatus | None = None
    unknown: tuple[str, ...] = ()
    error: UsageError | None = None


def _ask(client: Client, name: str, timeout_s: float) -> _Seen:
    try:
        report = client.status(name, timeout_s=timeout_s)
    except UnreachableError as error:
        return _Seen(running=True, unknown=(str(error),))
    except UsageError as error:
        return _Seen(running=False, error=error)
    return _Seen(running=report.run is not None and report.status.state not in _ENDED, status=report.status)


def _folder(client: Client, name: str, timeout_s: float) -> tuple[Path | None, str]:
    """The log folder, or why there is none here."""
    try:
        return client.log_folder(name, timeout_s=timeout_s), ""
    except UsageError as error:
        return None, str(error)


def _observe(
    client: Client, name: str, policy: HealthPolicy, timeout_s: float
) -> tuple[Round | None, float, list[str]]:
    try:
        with client.topology(name, timeout_s=timeout_s) as topology:
            window = observed(observe(topology, policy.rhythm().look_back_s))
    except HeronError as error:
        return None, 0.0, [f"the present load: {error}"]
    return run_round(policy, window), window[-1].at_s - window[0].at_s, []


def _with_containers(facts: Facts, client: Client, timeout_s: float) -> Facts:
    """Facts with the containers as the scheduler sees them now."""
    try:
        with client.topology(facts.topology, timeout_s=timeout_s) as topology:
            return replace(facts, containers=topology.job().containers)
    except HeronError as error:
        return replace(facts, unknown=(*facts.unknown, f"the containers: {error}"))


def grown(before: TopologyStatus | None, after: TopologyStatus | None) -> dict[str, int]:
    """The tuples that bolts have failed between two reports of the same tasks."""
    if before is None or after is None or before.topology_id != after.topology_id:
        return {}
    earlier = {(each.name, each.reported_tasks): each.failed for each in before.components if each.kind == "bolt"}
    return {
        each.name: more
        for each in after.components
        if (more := each.failed - earlier.get((each.name, each.reported_tasks), each.failed)) > 0
    }


def _end_s(status: TopologyStatus | None, last_event_s: float | None) -> float:
    if status is not None and status.ended_at_s is not None:
        return status.ended_at_s
    return last_event_s if last_event_s is not None else wall_s()


def _gauges(facts: Facts, folder: Path) -> tuple[PastGauges, ...]:
    """The gauges before each death."""
    died = [each for each in deaths_of(facts) if each.at_s and each.process != EXECUTOR]
    if not died:
        return ()
    processes = {(each.container_id, each.process) for each in died}
    return read_gauges(folder, processes, min(each.at_s[0] for each in died) - LOOK_BACK_S)
